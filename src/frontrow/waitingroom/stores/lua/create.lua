-- Write a whole room if there is none. KEYS: room, took, codes, ends, knocks, visits, kept, ended, left, then the chunk of
-- each claim. ARGV: now, number of fields, fields…, number of took, took…, number of codes, codes…, number of ended visits,
-- ended visits…, then (member, offset, expires, tag) of each claim. The other keys of an older room are deleted.
if not missing() then return 0 end
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9])
local at = 2
local function take(write)
  local n = tonumber(ARGV[at])
  for i = at + 1, at + n, 2 do write(ARGV[i], ARGV[i + 1]) end
  at = at + n + 1
end
take(function(field, value) redis.call('HSET', room, field, value) end)
take(function(number, claims) redis.call('HSET', KEYS[2], number, claims) end)
local codes = tonumber(ARGV[at])
for i = at + 1, at + codes do redis.call('SADD', KEYS[3], ARGV[i]) end
at = at + codes + 1
local ended = tonumber(ARGV[at])
for i = at + 1, at + ended do redis.call('RPUSH', KEYS[8], ARGV[i]) end
at = at + ended + 1
redis.call('HSET', room, 'swept', int(now_s), 'active', '0', 'knocking', '0', 'ended_no', int(ended))
if get('slid_at') == 0 then redis.call('HSET', room, 'slid_at', int(now - get('interval')), 'bucket_at', int(now)) end
for i = 10, #KEYS do
  local member, offset, expires, tag = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  enter(KEYS[i], offset, expires, tag)
  if expires > now_s then
    redis.call('ZADD', KEYS[6], int(idle_end(expires, 0)), member)
    redis.call('HINCRBY', room, 'active', 1)
  end
  at = at + 4
end
return 1
