#!lua
-- Adds a session to its principal's list as the newest, removes the sessions that are gone, and
-- returns those beyond the limit (STREAM-10).
-- KEYS 1=sessions of the principal, by time of the addition
-- ARGV 1=session 2=limit 3=most sessions in the reply 4=life of the list, ms
--      5.. sessions that are gone
-- Replies the oldest sessions beyond the limit, oldest first
-- Called by Store::remember
local t = redis.call('TIME')
for i = 5, #ARGV do redis.call('ZREM', KEYS[1], ARGV[i]) end
redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2])
if over <= 0 then return {} end
return redis.call('ZRANGE', KEYS[1], 0, math.min(over, tonumber(ARGV[3])) - 1)
