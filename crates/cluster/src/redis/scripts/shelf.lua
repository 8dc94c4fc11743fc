#!lua flags=no-writes
-- The things on a shelf that are not over, in no order.
-- KEYS 1=shelf (hash, name to until|version|bytes of the rest|head)
-- ARGV none
-- Answers {name, ms left, head} for each, one after the other
-- Called by Store::shelf
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
