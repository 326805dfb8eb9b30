-- Raise issued, hi and lo of each lane to at least these. KEYS: room. ARGV: now, then (issued, hi, lo) of each lane.
if missing() then return ROOMLESS end
local names = {'i', 'h', 'l'}
for i = 2, #ARGV do
  local field = names[(i - 2) % 3 + 1] .. math.floor((i - 2) / 3)
  if tonumber(ARGV[i]) > get(field) then redis.call('HSET', room, field, ARGV[i]) end
end
return 1
