#!lua flags=allow-oom
-- Renews a membership (STREAM-12.1), or removes it. Runs even when memory is full, because
-- otherwise all nodes would look dead.
-- KEYS 1=members (sorted set, node to unix ms until which it lives)
-- ARGV 1=node 2=life, ms; 0 removes it 3=time for which dead nodes are kept, ms
-- Replies {now, {node, until, ...}}
-- Called by Store::heartbeat
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if ARGV[2] == '0' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - tonumber(ARGV[3])))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', tonumber(ARGV[2]) + tonumber(ARGV[3])))
return {now, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}
