#!lua flags=allow-oom
-- Removes the record of a session that was not used for a while.
-- Its id makes it again (design page, point 4).
-- KEYS 1=session
-- ARGV 1=principal 2=remaining life from which a record counts as used, ms
-- Replies 1 removed, or no record; 0 in use, ended, or of another principal
-- Called by Store::forget
local h = redis.call('GETRANGE', KEYS[1], 0, 24)
if h == '' then return 1 end
if string.sub(h, 1, 1) ~= 'A' or string.sub(h, 10, 25) ~= ARGV[1] or redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
redis.call('UNLINK', KEYS[1])
return 1
