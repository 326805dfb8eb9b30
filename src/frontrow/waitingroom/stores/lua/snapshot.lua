-- KEYS: room, ends, took, knocks. Answers the store's time, the room's fields and the claims of each slide.
if missing() then return nil end
sweep(KEYS[2], KEYS[4])
return {int(now), redis.call('HGETALL', room), redis.call('HGETALL', KEYS[3])}
