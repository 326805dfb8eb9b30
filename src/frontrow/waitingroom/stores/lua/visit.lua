-- Claims, renewals and returns, each decided once, in order. Mirrors MemoryStore._visit.
-- KEYS: room, ends, took, knocks, then the chunk of each ask. ARGV: now, seconds a knock counts, then (op, lane, position,
-- offset, ttl, until, tag, slide) of each. A chunk holds 8 bytes for each position: expiry in seconds (0 never claimed,
-- 1 given back, 2 knocked) and the claim's tag (of a knock: until when it counts).
if missing() then return ROOMLESS end
sweep(KEYS[2], KEYS[4])
local capacity, held = get('capacity'), redis.call('HGET', room, 'phase') == 'queue_all'

local function entry(chunk, offset)
  local raw = redis.call('GETRANGE', chunk, offset, offset + 7)
  if #raw < 8 then return 0, 0 end
  return struct.unpack('>I4I4', raw)
end
local function enter(chunk, offset, expires, tag)
  redis.call('SETRANGE', chunk, offset, struct.pack('>I4I4', expires, tag))
end

local function claim(chunk, offset, lane, position, ttl, tag, slide)
  local expires, old_tag = entry(chunk, offset)
  local knocking = expires == 2 and old_tag > now_s
  if expires ~= 0 and expires ~= 2 then
    if tag ~= 0 and tag == old_tag and expires > now_s then return {'repeated', expires} end
    return {'already', 0}
  end
  if position <= get('l' .. lane) and not knocking then return {'expired', 0} end
  if position > get('h' .. lane) then return {'waiting', 0} end
  if held then return {'held', 0} end
  if knocking then count(KEYS[4], old_tag, 'knocking', -1) end
  if slide ~= '0' and expires == 0 then redis.call('HINCRBY', KEYS[3], slide, 1) end
  if get('active') >= capacity then
    local till = now_s + tonumber(ARGV[2])
    enter(chunk, offset, 2, till)
    count(KEYS[4], till, 'knocking', 1)
    return {'full', 0}
  end
  enter(chunk, offset, now_s + ttl, tag)
  count(KEYS[2], now_s + ttl, 'active', 1)
  return {'ok', now_s + ttl}
end

local function stay(op, chunk, offset, ttl, till)
  local expires, tag = entry(chunk, offset)
  if expires == 1 then return {op == 'give_back' and 'already' or 'ended', 0} end
  if expires <= now_s then return {'ended', 0} end
  if op == 'give_back' then
    enter(chunk, offset, 1, tag)
    count(KEYS[2], expires, 'active', -1)
    redis.call('HINCRBY', room, 'released', 1)
    return {'ok', 0}
  end
  local new = math.min(now_s + ttl, till)
  if new <= expires then return {'repeated', expires} end
  enter(chunk, offset, new, tag)
  count(KEYS[2], expires, 'active', -1)
  count(KEYS[2], new, 'active', 1)
  return {'ok', new}
end

local answers = {}
for i = 0, (#ARGV - 2) / 8 - 1 do
  local a = 3 + 8 * i
  local op, chunk, offset, ttl = ARGV[a], KEYS[5 + i], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local answer
  if op == 'claim' then
    answer = claim(chunk, offset, ARGV[a + 1], tonumber(ARGV[a + 2]), ttl, tonumber(ARGV[a + 6]), ARGV[a + 7])
  else
    answer = stay(op, chunk, offset, ttl, tonumber(ARGV[a + 5]))
  end
  answer[3] = get('active')
  answers[i + 1] = answer
end
return answers
