#!lua
-- Takes tokens from buckets, exact GCRA (STREAM-16.1). The same arithmetic as Gcra::take of
-- `model`.
-- KEYS buckets of one shard
-- ARGV for each: microseconds per token, capacity in tokens, tokens wanted, debt, tokens given back
-- Replies two numbers for each: tokens granted, ms until one token
-- Called by Store::take_tokens
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local out = {}
for i = 1, #KEYS do
  local T, burst, want = tonumber(ARGV[5 * i - 4]), tonumber(ARGV[5 * i - 3]), tonumber(ARGV[5 * i - 2])
  local debt, back = tonumber(ARGV[5 * i - 1]), tonumber(ARGV[5 * i])
  local due = math.max(tonumber(redis.call('GET', KEYS[i]) or now), now) + debt * T - back * T
  due = math.min(math.max(due, now), now + 2000000000000000)
  local room = math.max(0, math.floor((now + burst * T - due) / T))
  local give = math.min(want, room)
  due = due + give * T
  if give > 0 or debt > 0 or back > 0 then
    redis.call('SET', KEYS[i], string.format('%.0f', due), 'PX', string.format('%.0f', math.ceil((due - now) / 1000) + 1000))
  end
  local wait = 0
  if give == 0 then wait = math.max(0, math.ceil((due + T - now - burst * T) / 1000)) end
  out[#out + 1] = give; out[#out + 1] = wait
end
return out
