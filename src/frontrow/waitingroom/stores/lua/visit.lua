-- Decide requests about visits, in order. Does the same as MemoryRoomStore._visit.
-- KEYS: room, ends, took, knocks, visits, kept, ended, left, handed, then the chunk of each request. ARGV: now, TTL of a knock in s,
-- then (op, lane, epoch, position, offset, ttl, until, tag, slide, hold) of each.
-- Returns for each: {result, expiry of the pass, people inside, end of the visit, end of the hold that keeps it}.
if missing() then return ROOMLESS end
local store = {legacy = KEYS[2], visits = KEYS[5], kept = KEYS[6], ended = KEYS[7], left = KEYS[8]}
sweep(store, KEYS[4])
local capacity, held = get('capacity'), redis.call('HGET', room, 'phase') == 'queue_all'

local function claim(ask)
  local expires, old_tag = entry(ask.chunk, ask.offset)
  local knocking = expires == 2 and old_tag > now_s
  if expires ~= 0 and expires ~= 2 then
    if ask.tag ~= 0 and ask.tag == old_tag and expires > now_s then
      return {'repeated', expires, 0, tonumber(redis.call('ZSCORE', store.visits, ask.member) or expires), 0}
    end
    return {'already', 0, 0, 0, 0}
  end
  if ask.position <= get('l' .. ask.lane) and not knocking then return {'expired', 0, 0, 0, 0} end
  if ask.position > get('h' .. ask.lane) then return {'waiting', 0, 0, 0, 0} end
  if held then return {'held', 0, 0, 0, 0} end
  if knocking then count(KEYS[4], old_tag, 'knocking', -1) end
  if ask.slide ~= '0' and expires == 0 then redis.call('HINCRBY', KEYS[3], ask.slide, 1) end
  if get('active') >= capacity then
    local till = now_s + tonumber(ARGV[2])
    enter(ask.chunk, ask.offset, 2, till)
    count(KEYS[4], till, 'knocking', 1)
    return {'full', 0, 0, 0, 0}
  end
  expires = now_s + ask.ttl
  local ends = idle_end(expires, 0)
  enter(ask.chunk, ask.offset, expires, ask.tag)
  redis.call('ZADD', store.visits, int(ends), ask.member)
  redis.call('HINCRBY', room, 'active', 1)
  return {'ok', expires, 0, ends, 0}
end

-- Change the end of a live visit.
local function stay(ask, expires, tag)
  local was, result, kept_until, hold = expires, 'ok', 0, ''
  local ends = tonumber(redis.call('ZSCORE', store.visits, ask.member))
  if not ends then  -- claimed under an older version: count it like all others from now on
    redis.call('HINCRBY', store.legacy, int(expires), -1)
    ends = expires
  end
  local kept = redis.call('HGET', store.kept, ask.member)
  if kept then
    kept_until, hold = string.match(kept, '^(%d+) (.*)$')
    kept_until = tonumber(kept_until)
  end
  if ask.op == 'keep' and ask.till > 0 and (ask.hold == hold or ask.till >= kept_until) then
    kept_until = ask.till
    redis.call('HSET', store.kept, ask.member, int(kept_until) .. ' ' .. ask.hold)
    expires = math.max(expires, kept_until)
    ends = math.max(ends, kept_until)
  elseif ask.op == 'keep' and (ask.till > 0 or not kept or ask.hold ~= hold) then
    result = 'repeated'
  elseif ask.op == 'leave' then
    redis.call('HSET', store.left, ask.member, int(now_s))
    ends = math.min(ends, math.max(now_s + get('leave'), kept_until))
  elseif ask.op == 'keep' then
    redis.call('HDEL', store.kept, ask.member)
    kept_until = 0
    ends = idle_end(expires, 0)
    if redis.call('HEXISTS', store.left, ask.member) == 1 then ends = math.min(ends, now_s + get('leave')) end
  elseif ask.op == 'hear' and ask.till > 0 and ask.till <= tonumber(redis.call('HGET', store.left, ask.member) or '0') then
    result = 'repeated'
  elseif ask.op ~= 'look' then
    redis.call('HDEL', store.left, ask.member)
    if ask.op == 'renew' then
      expires = math.max(expires, math.min(now_s + ask.ttl, ask.till))
      if expires == was then result = 'repeated' end
    end
    ends = idle_end(expires, kept_until)
  end
  if expires ~= was then enter(ask.chunk, ask.offset, expires, tag) end
  redis.call('ZADD', store.visits, int(ends), ask.member)
  return {result, expires, 0, ends, kept_until}
end

-- `handed`: sorted set of the hand-overs that were exchanged, score the second they expire. A room that was rebuilt has
-- lost it, so hand-overs of an earlier epoch (`ttl`) have expired.
local function hand_over(ask)
  if ask.till <= now_s or ask.ttl ~= get('epoch') then return 'expired' end
  redis.call('ZREMRANGEBYSCORE', KEYS[9], '-inf', int(now_s))
  if redis.call('ZADD', KEYS[9], 'NX', int(ask.till), ask.hold) == 0 then return 'already' end
  redis.call('EXPIRE', KEYS[9], int(ask.till - now_s + 60))
end

local function answer(ask)
  if ask.op == 'claim' then return claim(ask) end
  if ask.op == 'give_back' and ask.epoch == '0' then  -- issued without a place: it has no capacity
    remember_ended(store, ask.member, ask.till, '0')
    return {'ok', ask.till, 0, 0, 0}
  end
  local expires, tag = entry(ask.chunk, ask.offset)
  if expires == 1 then return {ask.op == 'give_back' and 'already' or 'ended', 0, 0, 0, 0} end
  if expires <= now_s then return {'ended', 0, 0, 0, 0} end
  if ask.op == 'give_back' then
    finish(store, ask.member, ask.chunk, ask.offset, expires, tag, '0')
    return {'ok', expires, 0, 0, 0}
  end
  local refused = ask.op == 'hand_over' and hand_over(ask)
  if refused then return {refused, 0, 0, 0, 0} end
  return stay(ask, expires, tag)
end

local answers = {}
for i = 0, (#ARGV - 2) / 10 - 1 do
  local a = 3 + 10 * i
  local ask = {
    op = ARGV[a], lane = ARGV[a + 1], epoch = ARGV[a + 2], position = tonumber(ARGV[a + 3]), chunk = KEYS[10 + i],
    offset = tonumber(ARGV[a + 4]), ttl = tonumber(ARGV[a + 5]), till = tonumber(ARGV[a + 6]),
    tag = tonumber(ARGV[a + 7]), slide = ARGV[a + 8], hold = ARGV[a + 9],
    member = ARGV[a + 1] .. ':' .. ARGV[a + 2] .. ':' .. ARGV[a + 3],
  }
  answers[i + 1] = answer(ask)
  answers[i + 1][3] = get('active')
end
return answers
