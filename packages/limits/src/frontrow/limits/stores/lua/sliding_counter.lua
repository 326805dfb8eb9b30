-- sliding_counter: counts per aligned window, and the share of the previous one still inside counts too.
-- State: a = window start, b = previous count, c = current count. A count above the limit comes from servers whose limit
-- is higher, and means that the limit is used up. The limit stands behind the counts for servers of version 0.1.

local function slot(packed, at)
  local ttl, shadow, limit, period, grain = unpack_('<ddddd', packed, at)
  return { ttl = ttl, shadow = shadow, limit = limit, period = period, grain = grain }
end

local function read(_, _, packed)
  if not packed or #packed ~= 32 then return end
  local a, b, c = unpack_('<ddd', packed)
  if a == a and b == b and c == c then return a, b, c end -- else somebody else wrote something that is no number
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
  local width, into, limit = period / grain, floor((now - start) / grain), q.limit
  local seen, used = min(prev, limit), min(cur, limit)
  local left = limit - used
  if prev > 0 then left = max(0, div(limit * width - seen * (width - into), width) - used) end
  if cost <= left then
    cur = cur + cost
    return true, left - cost, counter_reset(q, prev, cur, now - start), 0, 0, start, prev, cur
  end
  local room, opens = limit - used - cost, nil
  if room >= 0 then
    opens = width - div(room * width, seen)
  else
    opens = 2 * width - div((limit - cost) * width, used)
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
