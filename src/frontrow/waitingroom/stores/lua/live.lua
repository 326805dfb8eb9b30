-- The standing expiry of one pass, 0 if there is none. KEYS: room, chunk. ARGV: now, offset.
if missing() then return ROOMLESS end
local raw = redis.call('GETRANGE', KEYS[2], ARGV[2], ARGV[2] + 3)
if #raw < 4 then return 0 end
local expires = struct.unpack('>I4', raw)
return expires > now_s and expires or 0
