#!lua
-- Appends events: creates, fences, compares and swaps, numbers, trims and closes the stream, and
-- notifies the attached node (STREAM-7).
-- KEYS 1=meta 2=events 3=questions 4=running requests 5=index 6=session 7=open streams of the
-- writer
-- ARGV 1=writer 2=epoch of the writer '<term>.<nonce>'
--      3=number of the last event as the writer knows it 4=most events 5=most bytes
--      6=life of a closed log, ms 7=life after the deadline, ms
--      8=largest event inside a message 9=prefix of channels 10=session 11=nonce
--      12='-', or the state in which it closes, 'C' or 'X' 13=key among the running requests
--      14='' or '1': create it 15=deadline from now, ms 16=number before the first event
--      17=facts for a new owner 18.. triples: class, '-' or '=' and the question's id, payload
-- Replies {1, tail, attached or '-', generation, overflow} done; {2} fenced;
--         {3, tail, state} another tail; {4, state, tail} ended; {5} gone
-- Called by Store::append
local function int(x) return string.format('%.0f', x) end
local function field(s) return #s .. ':' .. s end
local function keep(key, at)
  if redis.call('PEXPIRETIME', key) < at then redis.call('PEXPIREAT', key, int(at)) end
end
local m, e = KEYS[1], KEYS[2]
local member = ARGV[10] .. ':' .. ARGV[11]
local h = redis.call('HMGET', m, 'own', 'tail', 'bytes', 'at', 'ag', 'st', 'drop', 'try', 'end', 'qs')
if not h[2] then
  if redis.call('GETRANGE', KEYS[6], 0, 0) == 'E' then return {4, 'X', 0} end
  if ARGV[14] == '' then return {5} end
  local t = redis.call('TIME')
  local dl = t[1] * 1000 + math.floor(t[2] / 1000) + tonumber(ARGV[15])
  local over = dl + tonumber(ARGV[7])
  local n, mark = string.match(ARGV[2], '^(%d+)%.(.*)$')
  local as = ''
  if n ~= '1' then as = n .. ':' .. ARGV[16] .. ':' .. mark .. ',' end
  redis.call('HSET', m, 'own', ARGV[1], 'tail', ARGV[16], 'bytes', 0, 'at', ARGV[1], 'ag', 1, 'st', 'O', 'drop', ARGV[16],
             'dl', int(dl), 'end', int(over), 'try', ARGV[2], 'as', as, 'ab', ARGV[17])
  redis.call('PEXPIREAT', m, int(over))
  if redis.call('HLEN', KEYS[5]) >= 64 then
    local pre = string.sub(m, 1, #m - #ARGV[11])
    -- Check more entries than are created. A check of all entries of the last minutes would become
    -- slower with each stream.
    for _, old in ipairs(redis.call('HRANDFIELD', KEYS[5], 8)) do
      if redis.call('EXISTS', pre .. old) == 0 then redis.call('HDEL', KEYS[5], old) end
    end
  end
  redis.call('HSET', KEYS[5], ARGV[11], 1)
  keep(KEYS[5], over + tonumber(ARGV[6]))
  redis.call('SADD', KEYS[7], member)
  keep(KEYS[7], over)
  h = {ARGV[1], ARGV[16], '0', ARGV[1], '1', 'O', ARGV[16], ARGV[2], int(over), false}
end
local tail, bytes, drop = tonumber(h[2]), tonumber(h[3]), tonumber(h[7])
if h[1] ~= ARGV[1] or h[8] ~= ARGV[2] then return {2} end
if tonumber(ARGV[3]) ~= tail then return {3, tail, h[6]} end
if h[6] ~= 'O' then return {4, h[6], tail} end
local n, class, payload, final, asked = 0, '', '', false, h[10]
for i = 18, #ARGV, 3 do
  class, payload = ARGV[i], ARGV[i + 2]
  tail = tail + 1; n = n + 1; bytes = bytes + #payload
  redis.call('RPUSH', e, int(tail) .. '|' .. class .. '|' .. payload)
  if class == 'F' then final = true end
  if ARGV[i + 1] ~= '-' then
    redis.call('HSETNX', KEYS[3], string.sub(ARGV[i + 1], 2), 'P' .. ARGV[11])
    keep(KEYS[3], tonumber(h[9]))
    if not asked then asked = '1'; redis.call('HSET', m, 'qs', 1) end
  end
end
local most, most_bytes, overflow = tonumber(ARGV[4]), tonumber(ARGV[5]), 0
if bytes > most_bytes or redis.call('LLEN', e) > most then
  local all, kept = redis.call('LRANGE', e, 0, -1), {}
  local count = #all
  for i = 1, #all do
    local s, c, at = string.match(all[i], '^(%d+)|(%a)|()')
    if c == 'N' and tonumber(s) < tail and (count * 4 > most * 3 or bytes * 4 > most_bytes * 3) then
      bytes = bytes - (#all[i] - at + 1); count = count - 1; drop = math.max(drop, tonumber(s))
    else kept[#kept + 1] = all[i] end
  end
  redis.call('DEL', e)
  for i = 1, #kept do redis.call('RPUSH', e, kept[i]) end
  if count > most or bytes > most_bytes then overflow = 1 end
end
redis.call('HSET', m, 'tail', int(tail), 'bytes', bytes, 'drop', int(drop))
if final then redis.call('HSET', m, 'fin', 1) end
local st = 'O'
if ARGV[12] ~= '-' then
  st = ARGV[12]
  redis.call('HSET', m, 'st', st)
  redis.call('HDEL', KEYS[4], ARGV[13])
  redis.call('SREM', KEYS[7], member)
  if asked then
    local q = redis.call('HGETALL', KEYS[3])
    for i = 1, #q, 2 do
      if string.sub(q[i + 1], 2, 17) == ARGV[11] then redis.call('HDEL', KEYS[3], q[i]) end
    end
  end
  redis.call('PEXPIRE', m, ARGV[6])
  redis.call('PEXPIRE', e, ARGV[6])
elseif n > 0 then
  redis.call('PEXPIREAT', e, h[9])
end
if h[4] ~= '-' and h[4] ~= ARGV[1] then
  local event = ''
  if n == 1 and #payload <= tonumber(ARGV[8]) then event = field(class) .. field(payload) end
  redis.call('PUBLISH', ARGV[9] .. h[4], 'E' .. field(ARGV[10]) .. field(ARGV[11]) .. field(h[5]) .. field(h[8])
             .. field(int(tail)) .. field(st) .. event)
end
return {1, tail, h[4], tonumber(h[5]), overflow}
