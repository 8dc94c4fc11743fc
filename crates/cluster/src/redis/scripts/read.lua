#!lua flags=no-writes
-- Reads many streams of one partition: gaps, anti-entropy, audit (STREAM-8).
-- KEYS pairs: meta, events
-- ARGV 1=most events 2=most bytes of one stream's reply;
--      then for each: generation, position, owner or '-' and epoch as last seen
-- Replies for each 0 gone; 1 open and unchanged; or
--         {owner or '-', state, tail, dropped, generation, ms to the deadline, more, events,
--          epoch, epochs, attached or '-'}
-- Called by Store::read
local function int(x) return string.format('%.0f', x) end
local answers, now, most = {}, nil, tonumber(ARGV[1])
for i = 1, #KEYS, 2 do
  local j = 2 * i + 1
  local q = redis.call('HMGET', KEYS[i], 'own', 'tail', 'ag', 'st', 'try')
  if not q[2] then answers[#answers + 1] = 0
  elseif q[2] == ARGV[j + 1] and q[3] == ARGV[j] and q[4] == 'O' and q[1] == ARGV[j + 2] and q[5] == ARGV[j + 3] then
    answers[#answers + 1] = 1
  else
    local m = redis.call('HMGET', KEYS[i], 'at', 'drop', 'dl', 'as')
    local cur, tail, out, bytes, more = tonumber(ARGV[j + 1]), tonumber(q[2]), {}, 0, 0
    if q[3] == ARGV[j] and cur < tail then
      local from = -math.min(tail - cur, math.max(1, redis.call('LLEN', KEYS[i + 1])))
      while from < 0 and more == 0 do
        -- Read one page of a long log; later entries are not read.
        local ev = redis.call('LRANGE', KEYS[i + 1], int(from), int(math.min(from + most, -1)))
        for k = 1, #ev do
          local s, at = string.match(ev[k], '^(%d+)|%a|()')
          if tonumber(s) > cur then
            if #out >= most or bytes > tonumber(ARGV[2]) then more = 1; break end
            out[#out + 1] = ev[k]; bytes = bytes + #ev[k] - at + 1
          end
        end
        from = from + most + 1
      end
    end
    if not now then
      local t = redis.call('TIME')
      now = t[1] * 1000 + math.floor(t[2] / 1000)
    end
    answers[#answers + 1] = {q[1], q[4], tail, tonumber(m[2]), tonumber(q[3]), math.max(0, tonumber(m[3]) - now), more, out,
                             q[5], m[4], m[1]}
  end
end
return answers
