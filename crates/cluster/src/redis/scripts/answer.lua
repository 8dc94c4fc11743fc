#!lua
-- Stores a client's answer to a question and notifies the current owner of the stream
-- (STREAM-14).
-- KEYS 1=session 2=questions
-- ARGV 1=principal 2=question 3=payload 4=prefix of channels 5=session
--      6=largest payload inside a message 7=prefix of metas
-- Entries: P (waiting) and nonce, or A (answered), nonce and payload
-- Replies 0 unknown; 1 stored; 2 another answer came first; 3 no such question
-- Called by Store::answer
local function field(s) return #s .. ':' .. s end
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h ~= '' and (string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1]) then return 0 end
local c = redis.call('HGET', KEYS[2], ARGV[2])
if not c then return 3 end
local n = string.sub(c, 2, 17)
local own = redis.call('HGET', ARGV[7] .. n, 'own')
if not own then redis.call('HDEL', KEYS[2], ARGV[2]); return 3 end
if string.sub(c, 1, 1) == 'P' then
  redis.call('HSET', KEYS[2], ARGV[2], 'A' .. n .. ARGV[3])
elseif string.sub(c, 18) ~= ARGV[3] then
  return 2
end
if own ~= '-' then
  local body = ''
  if #ARGV[3] <= tonumber(ARGV[6]) then body = field(ARGV[3]) end
  redis.call('PUBLISH', ARGV[4] .. own, 'A' .. field(ARGV[5]) .. field(n) .. field(ARGV[2]) .. body)
end
return 1
