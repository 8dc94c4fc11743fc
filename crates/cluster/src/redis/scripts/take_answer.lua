#!lua flags=no-writes
-- Returns the answer to a question, as long as its stream exists (STREAM-14).
-- Entries: see answer.lua.
-- KEYS 1=questions
-- ARGV 1=question 2=prefix of metas
-- Replies the payload, or nothing
-- Called by Store::take_answer
local c = redis.call('HGET', KEYS[1], ARGV[1])
if not c or string.sub(c, 1, 1) ~= 'A' then return false end
if redis.call('EXISTS', ARGV[2] .. string.sub(c, 2, 17)) == 0 then return false end
return string.sub(c, 18)
