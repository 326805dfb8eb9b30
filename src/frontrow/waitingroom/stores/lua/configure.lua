-- Replace some fields if nobody slid or configured since they were read. KEYS: room.
-- ARGV: now, expected slide number, expected revision, 1 to fix the draw, then field, value, …
if missing() then return ROOMLESS end
if get('slide_no') ~= tonumber(ARGV[2]) or get('rev') ~= tonumber(ARGV[3]) then return 0 end
for i = 5, #ARGV, 2 do redis.call('HSET', room, ARGV[i], ARGV[i + 1]) end
if ARGV[4] == '1' then
  for lane = 0, get('n') - 1 do redis.call('HSET', room, 'd' .. lane, int(get('i' .. lane))) end
end
redis.call('HINCRBY', room, 'rev', 1)
return 1
