#!lua flags=no-writes
-- A thing on a shelf, unless it is over.
-- KEYS 1=shelf (hash, name to until|version|bytes of the rest|head) 2=rest of the thing
-- ARGV 1=name
-- Answers {version, ms left, head, rest}; {} none
-- Called by Store::kept
local s = redis.call('HGET', KEYS[1], ARGV[1])
if not s then return {} end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local u, v, at = string.match(s, '^(%d+)|(%x+)|%d+|()')
if tonumber(u) <= now then return {} end
return {v, math.floor(tonumber(u) - now), string.sub(s, at), redis.call('GET', KEYS[2]) or ''}
