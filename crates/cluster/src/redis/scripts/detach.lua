#!lua flags=allow-oom
-- Removes the attachment of a connection of this generation
-- (STREAM-8 *Take-over without close*).
-- KEYS 1=meta
-- ARGV 1=node 2=generation
-- Replies 1 detached; 0 a newer connection is attached
-- Called by Store::detach
local m = redis.call('HMGET', KEYS[1], 'at', 'ag')
if m[1] == ARGV[1] and m[2] == ARGV[2] then redis.call('HSET', KEYS[1], 'at', '-'); return 1 end
return 0
