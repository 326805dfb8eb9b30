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

-- Count out the passes that have run out: `ends` maps a second to how many end then (at most one field a second).
local function sweep(ends)
  if now_s <= get('swept') then return end
  redis.call('HSET', room, 'swept', int(now_s))
  local all, gone = redis.call('HGETALL', ends), 0
  for i = 1, #all, 2 do
    if tonumber(all[i]) <= now_s then
      gone = gone + tonumber(all[i + 1])
      redis.call('HDEL', ends, all[i])
    end
  end
  if gone > 0 then
    redis.call('HINCRBY', room, 'active', -gone)
    redis.call('HINCRBY', room, 'released', gone)
  end
end
local function count(ends, second, change)
  if redis.call('HINCRBY', ends, int(second), change) == 0 then redis.call('HDEL', ends, int(second)) end
  redis.call('HINCRBY', room, 'active', change)
end
