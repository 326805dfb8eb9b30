-- The reports of the shop's health: reporter, "number p95 requests errors at", … KEYS: room, reports.
if missing() then return ROOMLESS end
return redis.call('HGETALL', KEYS[2])
