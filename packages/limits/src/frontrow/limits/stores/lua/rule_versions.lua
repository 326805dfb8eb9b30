-- The versions of a rule book.
--
-- KEYS[1]  hash: version -> "version time_us JSON"
-- KEYS[2]  the number of the newest version
-- ARGV     "newest" version time_us (what the reader has) | "get" version | "history" most | "put" seen JSON most
-- Reply: the versions. "put" replies with the newest number, and the new version if it was added.

local call = redis.call
local newest = tonumber(call('GET', KEYS[2]) or '0')

if ARGV[1] == 'newest' or ARGV[1] == 'get' then
  local version = ARGV[1] == 'get' and ARGV[2] or tostring(newest)
  local found = call('HGET', KEYS[1], version)
  if not found then return {} end
  local known = ARGV[2] .. ' ' .. (ARGV[3] or '') .. ' '
  if ARGV[1] == 'newest' and string.sub(found, 1, #known) == known then return {} end
  return { found }
elseif ARGV[1] == 'history' then
  local found = {}
  for version = newest, math.max(1, newest - tonumber(ARGV[2]) + 1), -1 do
    found[#found + 1] = call('HGET', KEYS[1], tostring(version)) or nil
  end
  return found
end

if newest ~= tonumber(ARGV[2]) then return { tostring(newest) } end
local time = call('TIME')
local version = tostring(newest + 1)
local packed = version .. ' ' .. time[1] .. string.format('%06d', time[2]) .. ' ' .. ARGV[3]
call('HSET', KEYS[1], version, packed)
call('SET', KEYS[2], version)
call('HDEL', KEYS[1], tostring(newest + 1 - tonumber(ARGV[4])))
return { version, packed }
