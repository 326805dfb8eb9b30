-- token_bucket, leaky_bucket and leaky_queue: a debt that drains at the quota's rate and must fit the bucket.
-- State: a = time, b = debt. It is stored with the weight of one unit and the capacity that it was counted under.
-- Under another quota, the units that were owed are owed, up to that quota's capacity.

local function div_up(a, b) return -div(-a, b) end

local function slot(packed, at)
  local ttl, shadow, capacity, life, leak, unit, queue = unpack_('<ddddddd', packed, at)
  return { ttl = ttl, shadow = shadow, capacity = capacity, life = life, leak = leak, unit = unit, queue = queue }
end

local function read(q, _, packed)
  if not packed or #packed ~= 32 then return end
  local a, b, unit, capacity = unpack_('<dddd', packed)
  if unit == q.unit and capacity == q.capacity then return a, b end
  local whole = div(b, unit)
  if whole >= q.capacity then return a, q.capacity * q.unit end
  return a, min(q.capacity * q.unit, whole * q.unit + min(q.unit, ceil((b - whole * unit) / unit * q.unit)))
end

local function judge(q, a, b, _, now, cost)
  local leak, unit = q.leak, q.unit
  local full = q.capacity * unit
  local before, debt = a or now, b or 0
  local moved = before - now > q.life
  if before > now and not moved then
    now = before
  elseif before < now then
    debt = max(0, debt - (now - before) * leak)
  end
  local owed = debt + cost * unit
  if owed <= full or cost == 0 then
    return true, max(0, div(full - owed, unit)), div_up(owed, leak), 0, q.queue == 1 and div_up(debt, leak) or 0, now, owed
  end
  local remaining, reset, retry = max(0, div(full - debt, unit)), div_up(debt, leak), div_up(owed - full, leak)
  return false, remaining, reset, retry, 0, moved and now or nil, debt
end

local function write(q, key, a, b)
  call('PSETEX', key, b > q.capacity * q.unit and 2 * q.ttl or q.ttl, pack('<dddd', a, b, q.unit, q.capacity))
end

-- [giving back]

local function refund(q, a, b, _, cost) return a, max(0, b - cost * q.unit) end

-- Owe more than the bucket holds: up to twice as much, if that is exact
local function charge(q, a, b, _, cost)
  local full = q.capacity * q.unit
  local most = max(full, min(2 * full, 9007199254740992 - full))
  return a, max(b, min(b + cost * q.unit, most))
end

local function take_back(q, a, b, _, cost, charged, now)
  local owed = cost * q.unit - max(0, now - charged) * q.leak -- what has drained was used up
  if owed > 0 then return a, max(0, b - owed) end
end
