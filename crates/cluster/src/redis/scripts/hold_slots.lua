#!lua flags=allow-oom
-- Sets what a node holds of a limit on simultaneous use (STREAM-16.2).
-- Runs even when memory is full: it replaces one small entry, and unused permits must be returned.
-- KEYS 1=limit (hash, node to held:used:until, the last in unix ms)
-- ARGV 1=node 2=life, ms 3=limit 4=used by the node 5=wanted by the node, in all
-- Replies {held by the node, held by the others, used by the others}
-- Called by Store::hold_slots
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local life, limit, used, want = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local others, busy = 0, 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= ARGV[1] then
    local h, u, till = string.match(all[i + 1], '^(%d+):(%d+):(%d+)$')
    if h and tonumber(till) > now then
      others = others + tonumber(h); busy = busy + tonumber(u)
    else
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
local held = math.max(used, math.min(want, math.max(0, limit - others)))
if held > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f:%.0f:%.0f', held, used, now + life))
  if redis.call('PTTL', KEYS[1]) < life then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', life)) end
else
  redis.call('HDEL', KEYS[1], ARGV[1])
end
return {held, others, busy}
