#!lua flags=no-writes
-- Returns the records of a list that have not expired, in no order; or one of them.
-- KEYS 1=list of records (hash, name to until|version|bytes of the rest|head)
--      2=rest of the one record
-- ARGV 1=name of the one record, '' for all
-- Replies {name, version, ms left, head, rest} for each, one after the other; the rest is '' in a
-- list
-- Called by Store::records
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local all, out = {ARGV[1], ''}, {}
if ARGV[1] == '' then all = redis.call('HGETALL', KEYS[1])
else all[2] = redis.call('HGET', KEYS[1], ARGV[1]) or '' end
for i = 1, #all, 2 do
  local u, v, at = string.match(all[i + 1], '^(%d+)|(%x+)|%d+|()')
  if u and tonumber(u) > now then
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = all[i], v, math.floor(tonumber(u) - now)
    out[n + 4] = string.sub(all[i + 1], at)
    out[n + 5] = KEYS[2] and redis.call('GET', KEYS[2]) or ''
  end
end
return out
