-- fixed_window: counts per aligned window. State: a = window start, b = count. The count means the same under any limit.

local function slot(packed, at)
  local ttl, shadow, limit, period = unpack_('<dddd', packed, at)
  return { ttl = ttl, shadow = shadow, limit = limit, period = period }
end

local function read(_, _, packed)
  if not packed or #packed ~= 16 then return end
  local a, b = unpack_('<dd', packed)
  if a == a and b == b then return a, b end -- else somebody else wrote something that is no number
end

local function judge(q, a, b, _, now, cost)
  local start = now - now % q.period
  local before, count = a or start, b or 0
  local moved = before - start > q.period
  if before > start and not moved then
    start, now = before, before
  elseif before < start then
    count = 0
  end
  local reset = start + q.period - now
  local used = count + cost
  if used <= q.limit or cost == 0 then
    return true, max(0, q.limit - used), used > 0 and reset or 0, 0, 0, start, used
  end
  return false, max(0, q.limit - count), reset, reset, 0, moved and start or nil, count
end

local function write(q, key, a, b)
  call('PSETEX', key, q.ttl, pack('<dd', a, b))
end

-- [giving back]

local function refund(_, a, b, _, cost) return a, max(0, b - cost) end

local function take_back(q, a, b, _, cost, charged)
  if charged - charged % q.period == a then return a, max(0, b - cost) end
end
