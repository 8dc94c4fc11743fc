#!lua flags=no-writes
-- Returns a record, unless it has expired.
-- KEYS 1=list of records (hash, name to until|version|bytes of the rest|head) 2=rest of the record
-- ARGV 1=name
-- Replies {version, ms left, head, rest}; {} none
-- Called by Store::record
local s = redis.call('HGET', KEYS[1], ARGV[1])
if not s then return {} end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local u, v, at = string.match(s, '^(%d+)|(%x+)|%d+|()')
if tonumber(u) <= now then return {} end
return {v, math.floor(tonumber(u) - now), string.sub(s, at), redis.call('GET', KEYS[2]) or ''}
