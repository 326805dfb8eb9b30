-- What every limit script begins with.

local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil
local pack, unpack_ = struct.pack, struct.unpack
local call = redis.call
local REPLY = '<lllllll' -- allowed, rule (from 1), remaining, reset_us, retry_us, delay_us, shadow bit mask

-- Division of whole numbers, rounded down exactly: a / b in doubles may come out one too high or low
local function div(a, b)
  local q = floor(a / b)
  if q * b > a then return q - 1 end
  if (q + 1) * b <= a then return q + 1 end
  return q
end
