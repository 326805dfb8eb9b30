-- Shared by all scripts of the waiting room. KEYS[1] is the room's hash. Times are microseconds by this server's clock;
-- ARGV[1] replaces the clock in tests (empty: the real one). Numbers are formatted with %.0f: tostring loses digits.
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

-- `ends` maps a second to the number of passes that expire then (only passes of an older version: visits have their own
-- keys now), `knocks` to the number of knocks that end then (at most one field per second of their time to live).
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
local function count(counts, second, total, change)
  if redis.call('HINCRBY', counts, int(second), change) == 0 then redis.call('HDEL', counts, int(second)) end
  redis.call('HINCRBY', room, total, change)
end

-- A chunk has 8 bytes per position: expiry in seconds (0 never claimed, 1 given back, 2 knocked) and the claim's tag
-- (of a knock: its end).
local function entry(chunk, offset)
  local raw = redis.call('GETRANGE', chunk, offset, offset + 7)
  if #raw < 8 then return 0, 0 end
  return struct.unpack('>I4I4', raw)
end
local function enter(chunk, offset, expires, tag)
  redis.call('SETRANGE', chunk, offset, struct.pack('>I4I4', expires, tag))
end

-- The visits of the room. `visits`: sorted set, member lane:epoch:position, score the second it ends without a request.
-- `kept`: hash, member to "<until> <hold>". `left`: hash, member to when its page was closed. `ended`: list of
-- "lane:epoch:position:expiry:how" (how it ended: 0 given back, 1 left, 2 idle while somebody waited), whose last entry
-- has the number `ended_no`. `legacy` is `ends`. `store` has these keys.
local function remember_ended(store, member, expires, how)
  if expires > now_s then
    redis.call('RPUSH', store.ended, member .. ':' .. int(expires) .. ':' .. how)
    redis.call('HINCRBY', room, 'ended_no', 1)
  end
end
local function finish(store, member, chunk, offset, expires, tag, how)
  if redis.call('ZREM', store.visits, member) == 1 then
    redis.call('HINCRBY', room, 'active', -1)
  else
    count(store.legacy, expires, 'active', -1)
  end
  redis.call('HDEL', store.kept, member)
  redis.call('HDEL', store.left, member)
  redis.call('HINCRBY', room, 'released', 1)
  if expires > now_s then enter(chunk, offset, 1, tag) end
  remember_ended(store, member, expires, how)
end

-- Whether somebody waits for a place in the shop. The same as RoomState.is_wanted.
local function is_wanted()
  if redis.call('HGET', room, 'phase') ~= 'open' then return false end
  if get('knocking') > 0 then return true end
  for lane = 0, get('n') - 1 do
    if get('i' .. lane) > get('h' .. lane) then return true end
  end
  return false
end
-- `wanted` is the second since when somebody waits without a break, 0 while nobody does. An idle visit ends only after
-- PATIENCE_S of that, so its page can warn first. After AWAY_S without a sweep, nobody could reach this store, so no
-- visitor could be heard: then every visit gets PATIENCE_S from now. Both are written above: model/idle_visits.py.
local function wanted_since(away)
  local was, since = get('wanted'), 0
  if is_wanted() then since = (was == 0 or away) and now_s or was end
  if since ~= was then redis.call('HSET', room, 'wanted', int(since)) end
  return since
end
-- Once per second: end the visits that are due and drop ended visits whose pass has expired, at most SWEEP_MOST per
-- call. The chunk of a due visit is not in KEYS; it has the room's hash tag, so it is in the same slot.
local SWEEP_MOST = 2000
local function sweep(store, knocks)
  local swept = get('swept')
  if now_s <= swept then return end
  local away = now_s > swept + AWAY_S
  local gone = due(store.legacy)
  redis.call('HINCRBY', room, 'active', -gone)
  redis.call('HINCRBY', room, 'released', gone)
  redis.call('HINCRBY', room, 'knocking', -due(knocks))
  local since = wanted_since(away)
  local idle_until, ended_idle = (since > 0 and since or now_s) + PATIENCE_S, false
  local over = redis.call('ZRANGEBYSCORE', store.visits, '-inf', int(now_s), 'LIMIT', 0, SWEEP_MOST)
  for _, member in ipairs(over) do
    local lane, epoch, position = string.match(member, '(%d+):(%d+):(%d+)')
    local chunk = room .. ':v:' .. lane .. ':' .. epoch .. ':' .. int(math.floor(position / 1024))
    local offset = position % 1024 * 8
    local expires, tag = entry(chunk, offset)
    local left = redis.call('HEXISTS', store.left, member) == 1
    local stays_until = away and now_s + PATIENCE_S or left and 0 or idle_until
    if math.min(expires, stays_until) > now_s then
      redis.call('ZADD', store.visits, int(math.min(expires, stays_until)), member)
    else
      finish(store, member, chunk, offset, expires, tag, left and '1' or '2')
      ended_idle = ended_idle or not left
    end
  end
  if ended_idle then redis.call('HSET', room, 'idle_hi', int(get('h0') + get('h1') + get('h2'))) end
  for _ = 1, SWEEP_MOST do
    local oldest = redis.call('LINDEX', store.ended, 0)
    if not oldest or tonumber(string.match(oldest, ':(%d+):%d$')) > now_s then break end
    redis.call('LPOP', store.ended)
  end
  if #over < SWEEP_MOST then redis.call('HSET', room, 'swept', int(now_s)) end
end
-- The end of a visit whose visitor made a request now.
local function idle_end(expires, kept_until)
  local idle = get('idle')
  if idle > 0 then expires = math.min(expires, now_s + idle) end
  return math.max(kept_until, expires)
end
-- Whether this store lost positions that the caller has seen (ARGV[2] to ARGV[4], one per possible lane).
local function behind()
  local issued = redis.call('HMGET', room, 'i0', 'i1', 'i2')
  for lane = 0, 2 do
    if tonumber(issued[lane + 1] or '0') < tonumber(ARGV[lane + 2]) then return true end
  end
  return false
end
