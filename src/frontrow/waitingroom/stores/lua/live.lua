-- The standing expiry of one pass, 0 if there is none or its visit ended. KEYS: room, chunk, visits. ARGV: now, offset,
-- member.
if missing() then return ROOMLESS end
local expires = entry(KEYS[2], tonumber(ARGV[2]))
local ends = redis.call('ZSCORE', KEYS[3], ARGV[3])
if ends and tonumber(ends) <= now_s then return 0 end
return expires > now_s and expires or 0
