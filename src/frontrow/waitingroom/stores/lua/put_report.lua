-- Keep a shop's report unless a newer one of the same reporter is here. KEYS: room, reports.
-- ARGV: now, reporter, number, "p95 requests errors", most reporters, time to live. A report is "number p95 requests
-- errors at". Reports older than the time to live make room for new reporters.
if missing() then return ROOMLESS end
local reports, ttl = KEYS[2], tonumber(ARGV[6])
local held = redis.call('HGET', reports, ARGV[2])
if held and tonumber(string.match(held, '^(%d+)')) >= tonumber(ARGV[3]) then return 0 end
if not held and redis.call('HLEN', reports) >= tonumber(ARGV[5]) then
  local all = redis.call('HGETALL', reports)
  for i = 1, #all, 2 do
    if now - tonumber(string.match(all[i + 1], '(%d+)$')) >= ttl then redis.call('HDEL', reports, all[i]) end
  end
  if redis.call('HLEN', reports) >= tonumber(ARGV[5]) then return 0 end
end
redis.call('HSET', reports, ARGV[2], ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. int(now))
redis.call('PEXPIRE', reports, int(2 * ttl / 1000))
return 1
