-- Joins with an idempotency key, a person (roster) or a code, each decided in order.
-- KEYS: room, codes, three rosters (one per possible lane), then the idempotency key of each join, or the room if it has
-- none.
-- ARGV: now, seen (3), key ttl in ms, 1 for a roster store, then (lane, person, code) of each join.
-- Returns for each: {kind, lane, position, epoch, time}; kind 1 fresh, 0 issued before, or a word for a refusal.
if missing() or behind() then return ROOMLESS end
local epoch, lanes, depth = get('epoch'), get('n'), get('depth')
local closed = redis.call('HGET', room, 'phase') == 'closed'
local waiting = 0
for lane = 0, lanes - 1 do waiting = waiting + math.max(0, get('i' .. lane) - get('h' .. lane)) end

local function known(key, person)
  if key ~= room then
    local stored = redis.call('GET', key)
    if stored then
      local lane, position, ep, at = string.match(stored, '(%d+) (%d+) (%d+) (%d+)')
      return {0, tonumber(lane), tonumber(position), tonumber(ep), at}
    end
  end
  if ARGV[6] == '1' and person ~= '' then
    for lane = 0, lanes - 1 do
      local score = redis.call('ZSCORE', KEYS[3 + lane], person)
      if score and tonumber(score) > get('l' .. lane) then
        return {0, lane, tonumber(score), epoch, int(now)}
      end
      if score then redis.call('ZREM', KEYS[3 + lane], person) end
    end
  end
end

local answers = {}
for i = 0, (#ARGV - 6) / 3 - 1 do
  local lane, person, code = tonumber(ARGV[7 + 3 * i]), ARGV[8 + 3 * i], ARGV[9 + 3 * i]
  local key = KEYS[6 + i]
  local answer = known(key, person)
  if not answer then
    if closed then
      answer = {'closed'}
    elseif depth > 0 and waiting >= depth then
      answer = {'overflow'}
    elseif code ~= '0' and redis.call('SADD', KEYS[2], code) == 0 then
      answer = {'used'}
    else
      local position = redis.call('HINCRBY', room, 'i' .. lane, 1)
      waiting = waiting + 1
      answer = {1, lane, position, epoch, int(now)}
      if key ~= room then
        local text = lane .. ' ' .. int(position) .. ' ' .. int(epoch) .. ' ' .. int(now)
        redis.call('SET', key, text, 'PX', ARGV[5])
      end
      if ARGV[6] == '1' and person ~= '' then redis.call('ZADD', KEYS[3 + lane], int(position), person) end
    end
  end
  answers[i + 1] = answer
end
return answers
