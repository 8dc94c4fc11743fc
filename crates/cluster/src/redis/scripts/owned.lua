#!lua flags=allow-oom
-- Returns the open streams of a node in a partition; removes those that have ended
-- (STREAM-7, STREAM-12.2).
-- KEYS 1=open streams of the node
-- ARGV 1=node or '-' 2=prefix of metas
-- Replies 'session:nonce' of each
-- Called by Store::owned_by
local out = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local m = redis.call('HMGET', ARGV[2] .. id, 'own', 'st')
  if m[1] == ARGV[1] and m[2] == 'O' then out[#out + 1] = id
  else redis.call('SREM', KEYS[1], id) end
end
return out
