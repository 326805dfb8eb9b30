-- Check owner, slide number, phase, due time and lengths, and move the window, in one step.
-- KEYS: room, took. ARGV: now, owner, expected slide number, due, ring, oldest slide kept, bucket, bucket time, note,
-- then (hi, lo) of each lane.
if missing() then return ROOMLESS end
if redis.call('HGET', room, 'leader') ~= ARGV[2] or now >= get('leader_until') then return 'not_leader' end
if get('slide_no') ~= tonumber(ARGV[3]) or redis.call('HGET', room, 'phase') ~= 'open' then return 'changed' end
local due, slid_at, interval = tonumber(ARGV[4]), get('slid_at'), get('interval')
if due < 1 or now < slid_at + due * interval then return 'not_due' end
local lanes = get('n')
if #ARGV ~= 9 + 2 * lanes then return 'changed' end
for lane = 0, lanes - 1 do
  local hi, lo = tonumber(ARGV[10 + 2 * lane]), tonumber(ARGV[11 + 2 * lane])
  local was_hi = get('h' .. lane)
  if hi < was_hi or hi > math.max(was_hi, get('i' .. lane)) or lo < get('l' .. lane) or lo > hi then
    return 'too_far'
  end
end
for lane = 0, lanes - 1 do
  redis.call('HSET', room, 'h' .. lane, ARGV[10 + 2 * lane], 'l' .. lane, ARGV[11 + 2 * lane])
end
redis.call('HSET', room, 'slide_no', int(get('slide_no') + 1), 'slid_at', int(slid_at + due * interval),
  'ring', ARGV[5], 'bucket', ARGV[7], 'bucket_at', ARGV[8], 'note', ARGV[9])
local took, oldest = redis.call('HKEYS', KEYS[2]), tonumber(ARGV[6])
for _, number in ipairs(took) do
  if tonumber(number) < oldest then redis.call('HDEL', KEYS[2], number) end
end
return 'slid'
