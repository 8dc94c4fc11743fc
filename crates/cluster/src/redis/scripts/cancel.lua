#!lua flags=allow-oom
-- Notifies the node that runs a request and marks its entry, or leaves a tombstone
-- (STREAM-14). Entries: see register.lua.
-- KEYS 1=session 2=running requests
-- ARGV 1=principal 2=key of the request 3=prefix of channels 4=session
--      5=life of a tombstone, ms 6=most tombstones 7=prefix of metas
-- Replies 0 unknown; 1 notified; 2 no node runs it
-- Called by Store::cancel
local function field(s) return #s .. ':' .. s end
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h ~= '' and (string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1]) then return 0 end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function lives(entry) return tonumber(string.match(entry, '|(%d+)$')) > now end
local c = redis.call('HGET', KEYS[2], ARGV[2])
if c and string.sub(c, 1, 1) ~= 'C' and lives(c) then
  local node, n = string.sub(c, 2, 15), string.match(c, '^([^|]*)', 16)
  redis.call('HSET', KEYS[2], ARGV[2], 'K' .. string.sub(c, 2))
  -- After a takeover the request runs on the owner of its stream.
  if n ~= '-' then node = redis.call('HGET', ARGV[7] .. n, 'own') or node end
  if node == '-' then return 2 end
  redis.call('PUBLISH', ARGV[3] .. node, 'C' .. field(ARGV[4]) .. field(ARGV[2]))
  return 1
end
if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[6]) then
  local a, tombstones = redis.call('HGETALL', KEYS[2]), 0
  for i = 1, #a, 2 do
    if not lives(a[i + 1]) then redis.call('HDEL', KEYS[2], a[i])
    elseif string.sub(a[i + 1], 1, 1) == 'C' and a[i] ~= ARGV[2] then tombstones = tombstones + 1 end
  end
  if tombstones >= tonumber(ARGV[6]) then return 2 end
end
local over = now + tonumber(ARGV[5])
redis.call('HSET', KEYS[2], ARGV[2], 'C|' .. string.format('%.0f', over))
if redis.call('PEXPIRETIME', KEYS[2]) < over then redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', over)) end
return 2
