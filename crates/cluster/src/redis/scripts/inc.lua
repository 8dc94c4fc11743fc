#!lua flags=allow-oom
-- Counts the processes that were this store. Another process than last time may have lost writes
-- (STREAM-17.3).
-- KEYS 1=incarnation
-- ARGV 1=run_id of the server
-- Replies the count
-- Called on each new connection, before any other command
local r = redis.call('HMGET', KEYS[1], 'id', 'n')
if r[1] == ARGV[1] then return tonumber(r[2]) end
local n = tonumber(r[2] or '0') + 1
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'n', n)
return n
