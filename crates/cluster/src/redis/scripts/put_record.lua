#!lua
-- Creates a record, or changes it by compare and swap on its version. Also removes expired records.
-- The same bytes again change nothing.
-- KEYS 1=list of records (hash, name to until|version|bytes of the rest|head) 2=rest of the record
-- ARGV 1=name 2=expected version (8 hex digits), '' to create it 3=life of a new record, ms
--      4=most records 5=most bytes 6=head 7=1 if the rest changes 8=rest
-- Replies {0} no such record; {1, version} done; {3} the list is full;
--         {2, name, version, ms left, head, rest} another writer was first
-- Called by Store::put_record
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local items, bytes, last = 0, 0, 0
local till, v, n, head
for i = 1, #all, 2 do
  local u, w, r, at = string.match(all[i + 1], '^(%d+)|(%x+)|(%d+)|()')
  u, r = tonumber(u), tonumber(r)
  if u <= now then
    redis.call('HDEL', KEYS[1], all[i])
  else
    if all[i] == ARGV[1] then
      till, v, n, head = u, w, r, string.sub(all[i + 1], at)
    else
      items = items + 1; bytes = bytes + r + #all[i + 1] - at + 1
    end
    if u > last then last = u end
  end
end
local new = #ARGV[6] + #ARGV[8]
if ARGV[2] == '' then
  if v and head == ARGV[6] then return {1, v} end
elseif not v then
  return {0}
else
  local next = string.format('%08x', (tonumber(ARGV[2], 16) + 1) % 4294967296)
  if v == next and head == ARGV[6] then return {1, v} end
  if v == ARGV[2] then
    if ARGV[7] ~= '1' then new = #ARGV[6] + n end
    if new > #head + n and bytes + new > tonumber(ARGV[5]) then return {3} end
    v = next
    head = nil
  end
end
if v and head then
  return {2, ARGV[1], v, math.floor(till - now), head, redis.call('GET', KEYS[2]) or ''}
end
if not v then
  if items >= tonumber(ARGV[4]) or bytes + new > tonumber(ARGV[5]) then return {3} end
  -- Seconds, so that no later record of this name has the version of another one.
  v = string.format('%08x', t[1] % 4294967296)
  till, n = now + tonumber(ARGV[3]), #ARGV[8]
end
if ARGV[7] == '1' then
  n = #ARGV[8]
  redis.call('SET', KEYS[2], ARGV[8], 'PXAT', string.format('%.0f', till))
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f|%s|%.0f|', till, v, n) .. ARGV[6])
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.max(last, till)))
return {1, v}
