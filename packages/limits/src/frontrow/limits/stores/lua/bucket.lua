-- token_bucket, leaky_bucket and leaky_queue: a debt that drains at the quota's rate and must fit the bucket.
-- State: a = time, b = debt, c = nil or { total, since }. It is stored with the weight of one unit and the capacity that
-- it was counted under. Under another quota the units that were owed are owed. What a smaller bucket does not hold stays
-- in a total, in parts of a unit, for servers with a larger one: see token_bucket and carry_over in algorithms.py.

local PARTS, EXACT = 1048576, 9007199254740992 -- 2^20, 2^53

local function div_up(a, b) return -div(-a, b) end

local function slot(packed, at)
  local ttl, shadow, capacity, life, leak, unit, queue = unpack_('<ddddddd', packed, at)
  return { ttl = ttl, shadow = shadow, capacity = capacity, life = life, leak = leak, unit = unit, queue = queue }
end

-- What only servers with different quotas need. It is defined when it is needed, which saves everybody else the time.
-- Returns keep_total(a, b, total, since), drained_parts(elapsed) and carry_over(a, b, c, counted_unit) of a slot.
local function totals(q)
  local unit, capacity, leak = q.unit, q.capacity, q.leak

  -- A weight in parts of a unit
  local function parts(weight, of_unit, rounded)
    local whole = div(weight, of_unit)
    return min(whole, 4294967296) * PARTS + rounded((weight - whole * of_unit) / of_unit * PARTS)
  end

  local function drained_parts(elapsed) return parts(min(elapsed, div(EXACT, leak)) * leak, unit, floor) end

  -- The total, unless it says no more than the debt
  local function keep_total(a, b, total, since)
    local left = total - drained_parts(a - since)
    if left <= parts(b, unit, floor) then return end
    if total < 2251799813685248 then return { total, since } end
    return { left, a }
  end

  local function carry_over(a, b, c, counted_unit)
    local full, whole = capacity * unit, div(b, counted_unit)
    local owed, total, since = full, c and c[1] or 0, c and c[2] or a
    local fits = whole < capacity
    if fits then
      owed = whole * unit + min(unit, ceil((b - whole * counted_unit) / counted_unit * unit))
    else
      fits = whole == capacity and b == whole * counted_unit
    end
    if fits and not c then return a, owed end
    if not fits then total, since = max(total, parts(b, counted_unit, ceil)), a end
    local left = total - drained_parts(a - since)
    if left >= capacity * PARTS then
      owed = full
    elseif left > 0 then
      whole = floor(left / PARTS)
      owed = max(owed, min(full, whole * unit + ceil((left - whole * PARTS) / PARTS * unit)))
    end
    return a, owed, keep_total(a, owed, total, since)
  end

  return keep_total, drained_parts, carry_over
end

local function read(q, _, packed)
  if not packed or (#packed ~= 32 and #packed ~= 48) then return end
  local a, b, unit, capacity = unpack_('<dddd', packed)
  if a ~= a or b ~= b then return end -- somebody else wrote something that is no number
  local c = #packed == 48 and { unpack_('<dd', packed, 33) } or nil
  if unit == q.unit and capacity == q.capacity then return a, b, c end
  local _, _, carry_over = totals(q)
  return carry_over(a, b, c, unit)
end

-- No sum of two weights is built that could exceed 2^53: a bucket may take more than a century to drain
local function judge(q, a, b, c, now, cost)
  local leak, unit = q.leak, q.unit
  local before, debt = a or now, b or 0
  local moved = before - now > q.life
  if before > now and not moved then
    now = before
  elseif before < now then
    debt = max(0, debt - (now - before) * leak)
  end
  local need, room = cost * unit, q.capacity * unit - debt
  if need <= room or cost == 0 then
    local left, delay = room > need and div(room - need, unit) or 0, q.queue == 1 and div_up(debt, leak) or 0
    if c then c = totals(q)(now, debt + need, c[1] + cost * PARTS, c[2] + min(0, now - before)) end
    return true, left, div_up(debt + need, leak), 0, delay, now, debt + need, c
  end
  local left = room > 0 and div(room, unit) or 0
  if c and moved then c = totals(q)(now, debt, c[1], c[2] + now - before) end
  return false, left, div_up(debt, leak), div_up(need - room, leak), 0, moved and now or nil, debt, c
end

local function write(q, key, a, b, c)
  local ttl = b > q.capacity * q.unit and 2 * q.ttl or q.ttl
  if c then -- kept until it has drained at this rate, but not for more than 366 days
    local _, drained_parts = totals(q)
    local left = max(0, c[1] - drained_parts(a - c[2])) / PARTS
    ttl = max(ttl, min(31622400000, q.ttl + ceil(left * q.unit / q.leak / 1000)))
    call('PSETEX', key, ttl, pack('<dddddd', a, b, q.unit, q.capacity, c[1], c[2]))
  else
    call('PSETEX', key, ttl, pack('<dddd', a, b, q.unit, q.capacity))
  end
end

-- [giving back]

local function refund(q, a, b, c, cost)
  return a, max(0, b - cost * q.unit), c and { max(0, c[1] - cost * PARTS), c[2] }
end

-- Owe more than the bucket holds: up to twice as much, if that is exact
local function charge(q, a, b, c, cost)
  local full = q.capacity * q.unit
  local most = max(full, min(2 * full, EXACT - full))
  return a, max(b, min(b + cost * q.unit, most)), c and { c[1] + cost * PARTS, c[2] }
end

local function take_back(q, a, b, c, cost, charged, now)
  local owed = cost * q.unit - max(0, now - charged) * q.leak -- what has drained was used up
  if owed > 0 then return a, max(0, b - owed), c end
end
