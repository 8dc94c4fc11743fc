#!lua flags=no-writes
-- Returns the records of a list that have not expired, in no order.
-- KEYS 1=list of records (hash, name to until|version|bytes of the rest|head)
-- ARGV none
-- Replies {name, ms left, head} for each, one after the other
-- Called by Store::records
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local all, out = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local u, at = string.match(all[i + 1], '^(%d+)|%x+|%d+|()')
  if tonumber(u) > now then
    out[#out + 1] = all[i]
    out[#out + 1] = math.floor(tonumber(u) - now)
    out[#out + 1] = string.sub(all[i + 1], at)
  end
end
return out
