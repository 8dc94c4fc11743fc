#!lua flags=allow-oom
-- Removes the record of a session that was not used for a while; or ends the session: removes all
-- its data, leaves a tombstone, notifies its nodes. Idempotent.
-- KEYS 1=session 2=index of its streams 3=running requests 4=questions
-- ARGV 1=principal 2=remaining life from which a record counts as used, ms; '' ends the session
--      3=life of the tombstone, ms 4=session 5=prefix of the partition 6=prefix of channels
-- Replies 1 removed, or there was no record; 0 in use, ended before, or of another principal
-- Called by Store::remove
local function field(s) return #s .. ':' .. s end
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h ~= '' and (string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1]) then return 0 end
if ARGV[2] ~= '' then
  if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
  redis.call('UNLINK', KEYS[1])
  return 1
end
local nodes, S, L = {}, ARGV[4], ARGV[5]
for _, n in ipairs(redis.call('HKEYS', KEYS[2])) do
  local id = S .. ':' .. n
  local m = redis.call('HMGET', L .. 'm:' .. id, 'own', 'at')
  if m[1] then nodes[m[1]] = 1; redis.call('SREM', L .. 'o:' .. m[1], id) end
  if m[2] then nodes[m[2]] = 1 end
  redis.call('UNLINK', L .. 'm:' .. id, L .. 'e:' .. id)
end
local f = redis.call('HVALS', KEYS[3])
for i = 1, #f do
  local k = string.sub(f[i], 1, 1)
  if k == 'R' or k == 'K' then nodes[string.sub(f[i], 2, 15)] = 1 end
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[1], 'E', 'PX', ARGV[3]) end
nodes['-'] = nil
for n in pairs(nodes) do redis.call('PUBLISH', ARGV[6] .. n, 'X' .. field(S)) end
return 1
