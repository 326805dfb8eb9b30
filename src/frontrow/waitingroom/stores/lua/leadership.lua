-- KEYS: room. ARGV: now, owner, ttl (0: resign). Take the leadership if it is free, extend it if this owner has it.
if missing() then return ROOMLESS end
local leader = redis.call('HGET', room, 'leader') or ''
if ARGV[3] == '0' then
  if leader == ARGV[2] then redis.call('HSET', room, 'leader', '', 'leader_until', '0') end
  return 1
end
if leader ~= '' and leader ~= ARGV[2] and now < get('leader_until') then return 0 end
redis.call('HSET', room, 'leader', ARGV[2], 'leader_until', int(now + tonumber(ARGV[3])))
return 1
