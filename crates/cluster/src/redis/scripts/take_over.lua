#!lua flags=allow-oom
-- Changes the owner of a stream by compare and swap (STREAM-12.2).
-- Recognises its own repetition.
-- KEYS 1=meta 2=open streams of the old owner 3=open streams of the new owner
-- ARGV 1=old owner or '-' 2=new owner or '-'
--      3=ms after the deadline from which any node may take the stream over
--      4=highest number that a client showed 5=term of that cursor, 0 = none 6=nonce of the new
--      epoch
--      7='session:nonce' 8=prefix of the partition 9=prefix of channels 10=session 11=nonce
-- Replies {0} ended or gone; {1} another node was first;
--         {2, tail, epoch, about, ms to the deadline, final response is in the log}
-- Called by Store::take_over
local function int(x) return string.format('%.0f', x) end
local function field(s) return #s .. ':' .. s end
local m = redis.call('HMGET', KEYS[1], 'own', 'tail', 'st', 'dl', 'try', 'as', 'at', 'ab', 'fin', 'end')
if not m[2] or m[3] ~= 'O' then
  redis.call('SREM', KEYS[2], ARGV[7])
  return {0}
end
local t = redis.call('TIME')
local left = tonumber(m[4]) - t[1] * 1000 - math.floor(t[2] / 1000)
local tail, try, shown = tonumber(m[2]), m[5], tonumber(ARGV[4])
local n, mark = string.match(try, '^(%d+)%.(.*)$')
n = tonumber(n)
-- A repetition of this takeover, whose reply was lost?
local again = m[1] == ARGV[2] and tail >= shown
              and (ARGV[2] == '-' or n > math.max(1, tonumber(ARGV[5])) and mark == ARGV[6])
if not again then
  if m[1] ~= ARGV[1] and left >= -tonumber(ARGV[3]) then return {1} end
  if shown > tail then
    tail = shown
    redis.call('HSET', KEYS[1], 'tail', int(tail), 'drop', int(tail))
  end
  if ARGV[2] ~= '-' then
    n = math.max(n, tonumber(ARGV[5])) + 1
    try = int(n) .. '.' .. ARGV[6]
    redis.call('HSET', KEYS[1], 'try', try, 'as', m[6] .. int(n) .. ':' .. int(tail) .. ':' .. ARGV[6] .. ',')
  end
  redis.call('HSET', KEYS[1], 'own', ARGV[2])
  redis.call('SREM', ARGV[8] .. 'o:' .. m[1], ARGV[7])
  if m[7] ~= '-' and m[7] ~= ARGV[2] then
    redis.call('PUBLISH', ARGV[9] .. m[7], 'O' .. field(ARGV[10]) .. field(ARGV[11]) .. field(ARGV[2]))
  end
end
redis.call('SADD', KEYS[3], ARGV[7])
if redis.call('PEXPIRETIME', KEYS[3]) < tonumber(m[10]) then redis.call('PEXPIREAT', KEYS[3], m[10]) end
return {2, tail, try, m[8], math.max(0, left), m[9] and 1 or 0}
