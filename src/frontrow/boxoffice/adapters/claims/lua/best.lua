-- Best available: chooses and claims seats in one atomic step, for all requests for one section that arrive together.
-- Twin of boxoffice/seats/model/best_seats.py (`choose_seats`). A differential property test keeps them equal: change both or neither.
--
-- KEYS   the section's epoch key, then the seats that may be chosen, in plan order
-- ARGV   now (16 digits), the expected epoch, 1 for an area, the runs packed as (offset, length, row, column2) best
--        first, the heads of the requests packed as (count, worst grade, mask, lifetime, start and length of the owner
--        mark), number of masks, the masks (a byte per seat), then a value per request
-- Reply  one item per request: "<offset>,<offset>…" sorted; 0: no fitting seats; "!<epoch>": the store has another epoch.
--        If a request got nothing, one more item: the taken seats as lines of "<offset>:<value>".
local now, is_area = ARGV[1], ARGV[3] == '1'
local call, byte, sub, abs = redis.call, string.byte, string.sub, math.abs
local size = #KEYS - 1
local runs, states, mask, owned, taken = {}, {}, '', {}, {}

local function load()
  for first = 2, #KEYS, 1000 do
    local last = math.min(first + 999, #KEYS)
    local values = call('MGET', unpack(KEYS, first, last))
    for i = 1, last - first + 1 do
      local offset, was = first + i - 3, values[i]
      states[offset] = 0
      if was and (sub(was, -1) == 's' or sub(was, -18, -3) > now) then
        states[offset] = 1
        taken[#taken + 1] = offset .. ':' .. was
        local mark = string.match(was, '^[^|]*|%d+(|[^|]*|)')
        owned[mark] = owned[mark] or {}
        table.insert(owned[mark], offset)
      end
    end
  end
  local at = 1
  while at <= #ARGV[4] do
    local offset, length, row, column2
    offset, length, row, column2, at = struct.unpack('>I4I4I4i4', ARGV[4], at)
    runs[#runs + 1] = { offset = offset, length = length, row = row, column2 = column2 }
  end
end

local function fits(at)
  return states[at] == 0 and byte(mask, at + 1) ~= 0
end

local function stretch(found, first, count)
  for at = first, first + count - 1 do found[#found + 1] = at end
  return found
end

local ODD_SIDE = 2

-- The cheapest choice in the stretch of free seats begin … finish - 1 against the best so far.
local function cheapest(run, begin, finish, count, lonely_ok, best, best_cost)
  local fitting = 0
  for at = begin, finish - 1 do
    fitting = byte(mask, at + 1) ~= 0 and fitting + 1 or 0
    local start = at - count + 1
    local left, right = start - begin, finish - 1 - at
    if fitting >= count and (lonely_ok or (left ~= 1 and right ~= 1)) then
      local cost = abs(run.column2 + 2 * (start - run.offset) + count - 1) + ODD_SIDE * (left % 2 + right % 2)
      if best < 0 or cost < best_cost then best, best_cost = start, cost end
    end
  end
  return best, best_cost
end

local function side_by_side(count, lonely_ok)
  for _, run in ipairs(runs) do
    local best, best_cost, begin, finish = -1, -1, -1, run.offset + run.length
    for at = run.offset, finish do
      local free = at < finish and states[at] == 0
      if free and begin < 0 then
        begin = at
      elseif not free and begin >= 0 then
        best, best_cost = cheapest(run, begin, at, count, lonely_ok, best, best_cost)
        begin = -1
      end
    end
    if best >= 0 then return stretch({}, best, count) end
  end
end

local function starts(run, count)
  local found, fitting = {}, 0
  for at = run.offset, run.offset + run.length - 1 do
    fitting = fits(at) and fitting + 1 or 0
    if fitting >= count then found[#found + 1] = at - count + 1 end
  end
  return found
end

local function nearest_pair(run, firsts, larger, other, seconds, smaller)
  local best_first, best_second, best_cost = -1, -1, -1
  for _, first in ipairs(firsts) do
    local middle2 = run.column2 + 2 * (first - run.offset) + larger - 1
    for _, second in ipairs(seconds) do
      local apart2 = abs(middle2 - (other.column2 + 2 * (second - other.offset) + smaller - 1))
      local cost = apart2 + abs(middle2)
      if apart2 < larger + smaller and (best_cost < 0 or cost < best_cost) then
        best_first, best_second, best_cost = first, second, cost
      end
    end
  end
  if best_cost < 0 then return nil end
  if best_first < best_second then return stretch(stretch({}, best_first, larger), best_second, smaller) end
  return stretch(stretch({}, best_second, smaller), best_first, larger)
end

local function two_rows(count)
  for larger = math.floor((count + 1) / 2), count - 1 do
    for _, run in ipairs(runs) do
      local firsts = starts(run, larger)
      if #firsts > 0 then
        for _, other in ipairs(runs) do
          if abs(other.row - run.row) == 1 then
            local pair = nearest_pair(run, firsts, larger, other, starts(other, count - larger), count - larger)
            if pair then return pair end
          end
        end
      end
    end
  end
end

local function first_fitting(count)
  local found = {}
  for _, run in ipairs(runs) do
    for at = run.offset, run.offset + run.length - 1 do
      if fits(at) then
        found[#found + 1] = at
        if #found == count then
          table.sort(found)
          return found
        end
      end
    end
  end
end

local function choose(count, grade)
  if count < 1 or count > size then return nil end
  if is_area then return grade == 1 and first_fitting(count) or nil end
  if grade == 1 then return side_by_side(count, false) end
  if grade == 2 then return side_by_side(count, true) end
  if grade == 3 then return two_rows(count) end
  return first_fitting(count)
end

local function best(count, worst)
  for grade = 1, worst do
    local found = choose(count, grade)
    if found then return found end
  end
end

local epoch = call('GET', KEYS[1])
local stale = epoch ~= ARGV[2] and '!' .. (epoch or '')
if not stale then load() end
local heads, masks = ARGV[5], tonumber(ARGV[6])
local answers, asked, at, refused = {}, 0, 1, false
while at <= #heads do
  local count, worst, which, px, from, length
  count, worst, which, px, from, length, at = struct.unpack('>HBHI4BB', heads, at)
  asked = asked + 1
  if stale then
    answers[asked] = stale
  else
    local value = ARGV[6 + masks + asked]
    local mark = sub(value, from, from + length - 1)
    mask = ARGV[6 + which]
    local chosen = owned[mark]
    if not chosen then
      chosen = best(count, worst)
      for _, offset in ipairs(chosen or {}) do
        call('SET', KEYS[offset + 2], value, 'PX', px)
        states[offset] = 1
      end
      owned[mark] = chosen
    end
    answers[asked] = chosen and table.concat(chosen, ',') or 0
    refused = refused or not chosen
  end
end
if refused then answers[asked + 1] = table.concat(taken, '\n') end
return answers
