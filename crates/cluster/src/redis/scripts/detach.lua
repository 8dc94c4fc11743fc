#!lua flags=allow-oom
-- The connection of this generation is gone (streams.md §8 *Take-over without close*).
-- KEYS 1=meta
-- ARGV 1=node 2=generation
-- Answers 1 detached; 0 it had been superseded
-- Called by Store::detach
local m = redis.call('HMGET', KEYS[1], 'at', 'ag')
if m[1] == ARGV[1] and m[2] == ARGV[2] then redis.call('HSET', KEYS[1], 'at', '-'); return 1 end
return 0
