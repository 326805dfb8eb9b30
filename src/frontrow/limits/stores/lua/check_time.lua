-- One check: whose it is, and when. See check_one.lua.
local key, now = KEYS[1], tonumber(ARGV[2])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
