-- One check: who, how much and when. See check_one.lua.
local key, cost, now = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
