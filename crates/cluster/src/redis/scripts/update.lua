#!lua
-- Replaces the body of a session's record by compare and swap on its version (STREAM-3.1).
-- KEYS 1=session
-- ARGV 1=principal 2=expected version 3=body
-- Replies {0} no such record; {1, version} done; {2, version, body} another writer was first
-- Called by Store::update
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1] then return {0} end
local v = string.sub(h, 2, 9)
if v ~= ARGV[2] then return {2, v, redis.call('GETRANGE', KEYS[1], 25, -1)} end
v = string.format('%08x', (tonumber(v, 16) + 1) % 4294967296)
redis.call('SET', KEYS[1], 'A' .. v .. ARGV[1] .. ARGV[3], 'KEEPTTL')
return {1, v}
