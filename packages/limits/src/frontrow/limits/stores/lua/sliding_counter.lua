-- sliding_counter: counts per aligned window, and the share of the previous one still inside counts too.
-- State: a = window start, b = previous count, c = current count. It is stored with the limit it was counted under.
-- Under another limit, a count above that limit means: used up.

local function slot(packed, at)
  local ttl, shadow, limit, period, grain = unpack_('<ddddd', packed, at)
  return { ttl = ttl, shadow = shadow, limit = limit, period = period, grain = grain }
end

local function read(q, _, packed)
  if not packed or #packed ~= 32 then return end
  local a, b, c, limit = unpack_('<dddd', packed)
  if limit ~= q.limit then return a, min(b, q.limit), min(c, q.limit) end
  return a, b, c
end

local function counter_reset(q, prev, cur, into)
  if cur > 0 then return 2 * q.period - into end
  if prev > 0 then return q.period - into end
  return 0
end

local function judge(q, a, b, c, now, cost)
  local period, grain = q.period, q.grain
  local start = now - now % period
  local before, prev, cur = a or start, b or 0, c or 0
  local moved = before - start > 2 * period
  if before > start and not moved then
    start, now = before, before
  elseif before < start then
    prev = (start - before == period) and cur or 0
    cur = 0
  end
  local width, into = period / grain, floor((now - start) / grain)
  local left = max(0, q.limit - cur)
  if prev > 0 then left = max(0, div(q.limit * width - prev * (width - into), width) - cur) end
  if cost <= left then
    cur = cur + cost
    return true, left - cost, counter_reset(q, prev, cur, now - start), 0, 0, start, prev, cur
  end
  local room, opens = q.limit - cur - cost, nil
  if room >= 0 then
    opens = width - div(room * width, prev)
  else
    opens = 2 * width - div((q.limit - cost) * width, cur)
  end
  local reset, retry = counter_reset(q, prev, cur, now - start), start + opens * grain - now
  return false, left, reset, retry, 0, moved and start or nil, prev, cur
end

local function write(q, key, a, b, c)
  call('PSETEX', key, q.ttl, pack('<dddd', a, b, c, q.limit))
end

-- [giving back]

local function refund(_, a, b, c, cost) return a, max(0, b - max(0, cost - c)), max(0, c - cost) end

local function take_back(q, a, b, c, cost, charged)
  local start = charged - charged % q.period
  if start == a then return a, b, max(0, c - cost) end
  if start == a - q.period then return a, max(0, b - cost), c end
end
