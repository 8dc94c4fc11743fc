#!lua
-- Notes a session as the newest of its principal, takes those out of the list that are gone, and names those that are too many
-- (streams.md §10).
-- KEYS 1=sessions of the principal, by when they were noted
-- ARGV 1=session 2=most 3=most to be named at once 4=life of the list, ms 5.. sessions that are gone
-- Answers sessions that are too many, oldest first
-- Called by Store::remember
local t = redis.call('TIME')
for i = 5, #ARGV do redis.call('ZREM', KEYS[1], ARGV[i]) end
redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2])
if over <= 0 then return {} end
return redis.call('ZRANGE', KEYS[1], 0, math.min(over, tonumber(ARGV[3])) - 1)
