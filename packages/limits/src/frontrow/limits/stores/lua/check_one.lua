-- Decides one check under one rule. What comes before it has read `packed`, the stored state.
--
-- KEYS[1]    the state
-- ARGV[1]    the quota slot, packed
-- ARGV[2]    the cost, or nothing: 1
-- ARGV[3]    now_us, or nothing: the server's clock
-- Reply: as in decide.lua, or only `remaining` and `reset_us` of a check that is allowed without delay (lua/fast)

local q = slot(ARGV[1], 1)
local a, b, c = read(q, key, packed)
local allowed, left, reset, retry, delay
allowed, left, reset, retry, delay, a, b, c = judge(q, a, b, c, now, cost)
if a then write(q, key, a, b, c) end
if q.shadow == 1 then return pack(REPLY, 1, 1, left, reset, 0, 0, allowed and 0 or 1) end
return pack(REPLY, allowed and 1 or 0, 1, left, reset, retry, delay, 0)
