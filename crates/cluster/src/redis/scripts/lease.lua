#!lua
-- Tokens out of buckets, exact GCRA (streams.md §16.1). The same sums as gcra::take.
-- KEYS buckets of one shard
-- ARGV for each: microseconds of one token, tokens that the bucket holds, tokens wanted, debt
-- Answers for each two numbers: granted, ms until one token
-- Called by Store::lease
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local out = {}
for i = 1, #KEYS do
  local T, burst, want, debt = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i])
  local due = math.min(math.max(tonumber(redis.call('GET', KEYS[i]) or now), now) + debt * T, now + 2000000000000000)
  local room = math.max(0, math.floor((now + burst * T - due) / T))
  local give = math.min(want, room)
  due = due + give * T
  if give > 0 or debt > 0 then
    redis.call('SET', KEYS[i], string.format('%.0f', due), 'PX', string.format('%.0f', math.ceil((due - now) / 1000) + 1000))
  end
  local wait = 0
  if give == 0 then wait = math.max(0, math.ceil((due + T - now - burst * T) / 1000)) end
  out[#out + 1] = give; out[#out + 1] = wait
end
return out
