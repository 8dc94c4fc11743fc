#!lua flags=allow-oom
-- Checks the session, attaches a client's connection, returns missed events (STREAM-8, STREAM-9).
-- KEYS 1=session 2=meta 3=events
-- ARGV 1=principal 2=number of the cursor 3=term of the cursor, 0 = none 4=its epoch's nonce 5=node
--      6=prefix of channels 7=session 8=nonce 9=most events 10=most bytes of a reply
-- Replies {0} session unknown; {1} stream gone;
--         {2, owner or '-', state, tail, dropped, generation, ms to the deadline, more, events,
--          epoch, epochs, position, split, facts for a new owner}
-- Called by Store::attach
local function int(x) return string.format('%.0f', x) end
local function field(s) return #s .. ':' .. s end
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h ~= '' and (string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1]) then return {0} end
local m = redis.call('HMGET', KEYS[2], 'own', 'tail', 'at', 'ag', 'st', 'drop', 'dl', 'try', 'as', 'ab')
if not m[2] then return {1} end
local cur, shown, split = tonumber(ARGV[2]), tonumber(ARGV[3]), 0
if shown > 0 then
  -- The same rules as fork::place; tests/it/differential.rs compares both.
  local known = shown == 1
  for a, s, mark in string.gmatch(m[9], '(%d+):(%d+):(%x*),') do
    a, s = tonumber(a), tonumber(s)   -- attempt a, marked, starts after number s
    if a == shown then
      known = true
      if mark ~= ARGV[4] then cur = math.min(cur, s); split = 1
      elseif cur < s then cur = s; split = 1 end
    elseif a > shown then
      if cur > s or not known then cur = math.min(cur, s); split = 1 end
      break
    end
  end
end
local tail, ag = tonumber(m[2]), tonumber(m[4])
if m[5] == 'O' then
  if m[3] ~= '-' and m[3] ~= ARGV[5] then
    redis.call('PUBLISH', ARGV[6] .. m[3], 'D' .. field(ARGV[7]) .. field(ARGV[8]) .. field(m[4]))
  end
  ag = ag + 1
  redis.call('HSET', KEYS[2], 'at', ARGV[5], 'ag', int(ag))
end
local out, bytes, more, most = {}, 0, 0, tonumber(ARGV[9])
if cur < tail then
  local from = -math.min(tail - cur, math.max(1, redis.call('LLEN', KEYS[3])))
  while from < 0 and more == 0 do
    -- Read one page of a long log; later entries are not read.
    local ev = redis.call('LRANGE', KEYS[3], int(from), int(math.min(from + most, -1)))
    for i = 1, #ev do
      local s, at = string.match(ev[i], '^(%d+)|%a|()')
      if tonumber(s) > cur then
        if #out >= most or bytes > tonumber(ARGV[10]) then more = 1; break end
        out[#out + 1] = ev[i]; bytes = bytes + #ev[i] - at + 1
      end
    end
    from = from + most + 1
  end
end
local t = redis.call('TIME')
local left = math.max(0, tonumber(m[7]) - t[1] * 1000 - math.floor(t[2] / 1000))
return {2, m[1], m[5], tail, tonumber(m[6]), ag, left, more, out, m[8], m[9], cur, split, m[10]}
