#!lua flags=allow-oom
-- Checks a session, prolongs its idle life, and makes the record if there is neither record nor
-- tombstone (STREAM-6.1).
-- KEYS 1=session
-- ARGV 1=principal (16 bytes) 2=known version (8 hex digits or '') 3=life of the record, ms
--      4=smallest gain that is written, ms 5=body of a new record
-- Replies {0} unknown; {1, version} alive and known; {1, version, body} alive;
--         {2, version} made again
-- Called by Store::begin
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h == '' then
  -- Seconds, so that no later record of this session has the version of another body.
  local v = string.format('%08x', redis.call('TIME')[1] % 4294967296)
  redis.call('SET', KEYS[1], 'A' .. v .. ARGV[1] .. ARGV[5], 'PX', ARGV[3])
  return {2, v}
end
if string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1] then return {0} end
local gain = tonumber(ARGV[3]) - redis.call('PTTL', KEYS[1])
if gain > 0 and gain >= tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
local v = string.sub(h, 2, 9)
if v == ARGV[2] then return {1, v} end
return {1, v, redis.call('GETRANGE', KEYS[1], 25, -1)}
