#!lua
-- Registers a running request. Reports a cancellation that came first or whose message was lost
-- (STREAM-6.3, STREAM-14).
-- KEYS 1=session 2=running requests
-- ARGV 1=key of the request 2=node 3=nonce of its stream or '-' 4=ms to its deadline
--      5=most requests of a session
-- Entries: R or K (cancelled), node (14 bytes), nonce or '-', '|', unix ms;
--          or C (a cancellation that came first), '|', unix ms
-- Replies 0 done; 1 cancelled; 2 full; 3 the session was ended
-- Called by Store::register
if redis.call('GETRANGE', KEYS[1], 0, 0) == 'E' then return 3 end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function lives(entry) return tonumber(string.match(entry, '|(%d+)$')) > now end
local c = redis.call('HGET', KEYS[2], ARGV[1])
if c and lives(c) then
  if string.sub(c, 1, 1) ~= 'R' then return 1 end
elseif redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[5]) then
  local a, requests = redis.call('HGETALL', KEYS[2]), 0
  for i = 1, #a, 2 do
    if not lives(a[i + 1]) then redis.call('HDEL', KEYS[2], a[i])
    elseif string.sub(a[i + 1], 1, 1) ~= 'C' then requests = requests + 1 end
  end
  if requests >= tonumber(ARGV[5]) then return 2 end
end
local over = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[2], ARGV[1], 'R' .. ARGV[2] .. ARGV[3] .. '|' .. string.format('%.0f', over))
if redis.call('PEXPIRETIME', KEYS[2]) < over then redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', over)) end
return 0
