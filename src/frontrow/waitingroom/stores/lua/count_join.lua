-- Anonymous joins without keys or codes: one HINCRBY per lane, whatever the number of people.
-- KEYS: room. ARGV: now, seen (3), then people for lanes 0, 1, … Returns epoch, time, then (last position, people) of
-- each lane.
local got = redis.call('HMGET', room, 'epoch', 'phase', 'depth', 'n')
if not got[1] or behind() then return ROOMLESS end
local answer = {tonumber(got[1]), int(now)}
local left = math.huge
if got[2] == 'closed' then return redis.error_reply('CLOSED') end
local depth = tonumber(got[3])
if depth > 0 then
  left = depth
  for lane = 0, tonumber(got[4]) - 1 do left = left - math.max(0, get('i' .. lane) - get('h' .. lane)) end
end
for lane = 0, #ARGV - 5 do
  local people = math.max(0, math.min(tonumber(ARGV[lane + 5]), left))
  left = left - people
  answer[#answer + 1] = people > 0 and redis.call('HINCRBY', room, 'i' .. lane, people) or 0
  answer[#answer + 1] = people
end
return answer
