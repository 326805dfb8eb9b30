-- What the algorithms use.

local max, min, ceil = math.max, math.min, math.ceil
local pack, unpack_ = struct.pack, struct.unpack
local call = redis.call
local REPLY = '<lllllll' -- allowed, rule (from 1), remaining, reset_us, retry_us, delay_us, shadow bit mask
