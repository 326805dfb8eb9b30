-- Shared by all scripts of the waiting room. KEYS[1] is the room's hash. Times are microseconds by this server's clock;
-- ARGV[1] replaces the clock in tests (empty: the real one). Numbers are printed with %.0f: tostring loses digits.
local function int(x) return string.format('%.0f', x) end
local function now_us()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local room, now = KEYS[1], now_us()
local now_s = math.floor(now / 1000000)
local function get(field) return tonumber(redis.call('HGET', room, field) or '0') end
local function missing() return redis.call('EXISTS', room) == 0 end
local ROOMLESS = redis.error_reply('ROOMLESS the room is not in this store')

-- Count out what has run out: `ends` maps a second to how many passes end then, `knocks` to how many knocks are forgotten
-- then (at most one field for each second of their life).
local function due(counts)
  local all, gone = redis.call('HGETALL', counts), 0
  for i = 1, #all, 2 do
    if tonumber(all[i]) <= now_s then
      gone = gone + tonumber(all[i + 1])
      redis.call('HDEL', counts, all[i])
    end
  end
  return gone
end
local function sweep(ends, knocks)
  if now_s <= get('swept') then return end
  local gone = due(ends)
  redis.call('HSET', room, 'swept', int(now_s))
  redis.call('HINCRBY', room, 'active', -gone)
  redis.call('HINCRBY', room, 'released', gone)
  redis.call('HINCRBY', room, 'knocking', -due(knocks))
end
local function count(counts, second, total, change)
  if redis.call('HINCRBY', counts, int(second), change) == 0 then redis.call('HDEL', counts, int(second)) end
  redis.call('HINCRBY', room, total, change)
end
-- Whether this store is behind what the caller has seen issued (ARGV[2] to ARGV[4], one for each lane there can be).
local function behind()
  local issued = redis.call('HMGET', room, 'i0', 'i1', 'i2')
  for lane = 0, 2 do
    if tonumber(issued[lane + 1] or '0') < tonumber(ARGV[lane + 2]) then return true end
  end
  return false
end
