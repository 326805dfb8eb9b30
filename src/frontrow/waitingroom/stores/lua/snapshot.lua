-- KEYS: room, ends, took, knocks, visits, kept, ended, left. Returns the store's time, the room's fields, the claims of
-- each slide and the number of visits that a hold keeps.
if missing() then return nil end
sweep({legacy = KEYS[2], visits = KEYS[5], kept = KEYS[6], ended = KEYS[7], left = KEYS[8]}, KEYS[4])
return {int(now), redis.call('HGETALL', room), redis.call('HGETALL', KEYS[3]), redis.call('HLEN', KEYS[6])}
