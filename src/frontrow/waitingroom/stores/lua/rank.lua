-- The number of people in the queue before this one. KEYS: room, roster. ARGV: now, lane, person.
if missing() then return ROOMLESS end
local score = redis.call('ZSCORE', KEYS[2], ARGV[3])
if not score then return nil end
return redis.call('ZCOUNT', KEYS[2], '(' .. int(get('h' .. ARGV[2])), '(' .. int(tonumber(score)))
