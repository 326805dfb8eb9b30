-- The visits that ended after number ARGV[2], at most ARGV[3] of them. KEYS: room, ends, knocks, visits, kept, ended, left.
-- Returns the number of the last one, then the entries of the list.
if missing() then return ROOMLESS end
sweep({legacy = KEYS[2], visits = KEYS[4], kept = KEYS[5], ended = KEYS[6], left = KEYS[7]}, KEYS[3])
local first = get('ended_no') - redis.call('LLEN', KEYS[6])  -- the number before the oldest one in the list
local skip = math.max(0, tonumber(ARGV[2]) - first)
local some = redis.call('LRANGE', KEYS[6], int(skip), int(skip + tonumber(ARGV[3]) - 1))
return {math.max(first, tonumber(ARGV[2])) + #some, some}
