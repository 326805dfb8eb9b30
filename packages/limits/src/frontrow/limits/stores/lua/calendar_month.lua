-- calendar_month: fixed windows that are the months of the calendar, in UTC. State: a = month's start, b = count.

local DAY, LONGEST = 86400000000, 31 * 86400000000

-- Years are counted from March, so that a leap day is the last day of its year
local function start_of(now)
  local day = div(now, DAY)
  local day_of_400_years = (day + 719468) % 146097
  local year = div(day_of_400_years - div(day_of_400_years, 1460) + div(day_of_400_years, 36524)
    - div(day_of_400_years, 146096), 365)
  local day_of_year = day_of_400_years - (365 * year + div(year, 4) - div(year, 100))
  local month = div(5 * day_of_year + 2, 153)
  return (day - day_of_year + div(153 * month + 2, 5)) * DAY
end

local function slot(packed, at)
  local ttl, shadow, limit = unpack_('<ddd', packed, at)
  return { ttl = ttl, shadow = shadow, limit = limit }
end

local function read(_, _, packed)
  if not packed or #packed ~= 16 then return end
  local a, b = unpack_('<dd', packed)
  if a == a and b == b then return a, b end -- else somebody else wrote something that is no number
end

local function judge(q, a, b, _, now, cost)
  local start = start_of(now)
  local before, count = a or start, b or 0
  local moved = before - start > LONGEST
  if before > start and not moved then
    start, now = before, before
  elseif before < start then
    count = 0
  end
  local reset = start_of(start + LONGEST) - now
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

local function take_back(_, a, b, _, cost, charged)
  if start_of(charged) == a then return a, max(0, b - cost) end
end
