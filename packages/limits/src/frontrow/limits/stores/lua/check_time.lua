-- One check: who, how much and when. See check_one.lua.
local call, key, cost, now = redis.call, KEYS[1], 1, nil
if ARGV[2] then
  cost, now = tonumber(ARGV[2]), tonumber(ARGV[3])
end
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
