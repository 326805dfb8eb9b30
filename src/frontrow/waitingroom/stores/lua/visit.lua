-- Claims, renewals and returns, each decided once, in order. Mirrors MemoryStore._visit.
-- KEYS: room, ends, took, then the chunk of each ask. ARGV: now, then (op, lane, position, offset, ttl, until, tag, slide)
-- of each. A chunk holds 8 bytes for each position: expiry in seconds (0 never claimed, 1 given back) and the claim's tag.
if missing() then return ROOMLESS end
sweep(KEYS[2])
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
  if expires ~= 0 then
    if tag ~= 0 and tag == old_tag and expires > now_s then return {'repeated', expires} end
    return {'already', 0}
  end
  if position <= get('l' .. lane) then return {'expired', 0} end
  if position > get('h' .. lane) then return {'waiting', 0} end
  if held then return {'held', 0} end
  if get('active') >= capacity then return {'full', 0} end
  enter(chunk, offset, now_s + ttl, tag)
  count(KEYS[2], now_s + ttl, 1)
  if slide ~= '0' then redis.call('HINCRBY', KEYS[3], slide, 1) end
  return {'ok', now_s + ttl}
end

local function stay(op, chunk, offset, ttl, till)
  local expires, tag = entry(chunk, offset)
  if expires == 1 then return {op == 'give_back' and 'already' or 'ended', 0} end
  if expires <= now_s then return {'ended', 0} end
  if op == 'give_back' then
    enter(chunk, offset, 1, tag)
    count(KEYS[2], expires, -1)
    redis.call('HINCRBY', room, 'released', 1)
    return {'ok', 0}
  end
  local new = math.min(now_s + ttl, till)
  if new <= expires then return {'repeated', expires} end
  enter(chunk, offset, new, tag)
  count(KEYS[2], expires, -1)
  count(KEYS[2], new, 1)
  return {'ok', new}
end

local answers = {}
for i = 0, (#ARGV - 1) / 8 - 1 do
  local a = 2 + 8 * i
  local op, chunk, offset, ttl = ARGV[a], KEYS[4 + i], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
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
