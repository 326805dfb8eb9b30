-- sliding_log: the time of every unit inside the window. Every step reads O(log n) records, whatever the log holds.
--
-- The stored string is a header and 16-byte records, oldest first. A record is one charge: its time, and the number of
-- units charged before it; so the units between two records are a subtraction, and a search finds a time or a unit.
-- Header: head (the first record inside the window), tail (one past the last), total (units ever charged), last (time of
-- the last record), shift (added to every stored time: a clock that was set back moves the whole log in one step), and
-- time and units before of the record at head. Records before head are dropped when they are half of the string.
--
-- State: a = a table of the header's numbers, `stored` (records in the string), `added` (records of this call, flat), and
-- a charge (`cost` units at `time`) that becomes a record when the state is used next.

local header, RECORD, DROP_FROM, LOOK_BACK, BLOCK = 56, 16, 64, 256, 128

local function slot(packed, at)
  local ttl, shadow, limit, period = unpack_('<dddd', packed, at)
  return { ttl = ttl, shadow = shadow, limit = limit, period = period }
end

local function read(_, key, packed)
  if #packed ~= header then
    return { key = key, head = 0, tail = 0, total = 0, last = 0, shift = 0, stored = 0, added = {}, cost = 0 }
  end
  local head, tail, total, last, shift, first, before = unpack_('<ddddddd', packed)
  return {
    key = key, head = head, tail = tail, total = total, last = last, shift = shift, first = first, before = before,
    stored = tail, added = {}, cost = 0,
  }
end

-- The time of record `at`, and the units charged before it. A search from `low` to `high` reads its last steps at once.
local function log_record(log, at, low, high)
  if at >= log.stored then
    local i = 2 * (at - log.stored)
    return log.added[i + 1], log.added[i + 2]
  end
  if low and high - low < BLOCK then
    if not log.block then
      log.block, log.block_at = call('GETRANGE', log.key, header + low * RECORD, header + (high + 1) * RECORD - 1), low
    end
    return unpack_('<dd', log.block, 1 + (at - log.block_at) * RECORD)
  end
  local from = header + at * RECORD
  return unpack_('<dd', call('GETRANGE', log.key, from, from + RECORD - 1))
end

local function append_charge(log)
  if log.cost == 0 then return end
  local head, tail, time = log.head, log.tail, log.time
  if head == tail then log.first, log.before = time, log.total end
  if head == tail or time ~= log.last then
    local added = log.added
    added[#added + 1] = time
    added[#added + 1] = log.total
    log.tail, log.last = tail + 1, time
  end
  log.total, log.cost = log.total + log.cost, 0
end

-- The first record later than `bound`: its number (tail if there is none), its time and the units before it
local function first_after(log, bound)
  local head, tail = log.head, log.tail
  if head == tail or log.last <= bound then return tail, 0, log.total end
  if log.first > bound then return head, log.first, log.before end
  local gone, found = head, head + 1
  local time, before = log_record(log, found)
  while time <= bound do -- steps that double: the record is near when the log is used often
    gone, found = found, min(2 * found - head, tail - 1)
    time, before = log_record(log, found)
  end
  while found - gone > 1 do
    local middle = floor((gone + found) / 2)
    local at, units = log_record(log, middle)
    if at <= bound then gone = middle else found, time, before = middle, at, units end
  end
  return found, time, before
end

-- The time of the nth unit counted from record `low`. If every record is of one unit, it is the first that is looked at
local function time_of_unit(log, low, time, before, n)
  local high = min(log.tail - 1, low + n - 1)
  local middle = high
  log.block = nil
  while low < high do
    local at, units = log_record(log, middle, low, high)
    if units - before < n then low, time = middle, at else high = middle - 1 end
    middle = ceil((low + high) / 2)
  end
  return time
end

local function judge(q, log, _, _, now, cost)
  append_charge(log)
  local period, shift = q.period, log.shift
  local back = log.tail > log.head and log.last + shift - now or 0
  local moved = back > period
  if moved then
    shift = shift - back
  elseif back > 0 then
    now = now + back
  end
  local low, time, before = first_after(log, now - period - shift)
  local left = q.limit - (log.total - before)
  local reset = low < log.tail and log.last + shift + period - now or 0
  local fits, after = cost <= left or cost == 0, nil
  if moved or fits then
    after = {
      key = log.key, head = low, tail = log.tail, total = log.total, last = log.last, shift = shift, first = time,
      before = before, stored = log.stored, added = log.added, cost = 0,
    }
  end
  if fits then
    if cost > 0 then after.cost, after.time, reset = cost, now - shift, period end
    return true, max(0, left - cost), reset, 0, 0, after
  end
  local leaves = time_of_unit(log, low, time, before, cost - left)
  return false, max(0, left), reset, leaves + shift + period - now, 0, after
end

local function write(q, key, log)
  append_charge(log)
  local head, tail, added = log.head, log.tail, log.added
  if head == tail then
    call('DEL', key)
    return
  end
  if #added > 0 then
    local packed = added[3] and {} or pack('<dd', added[1], added[2])
    if added[3] then
      for i = 1, #added, 2 do packed[#packed + 1] = pack('<dd', added[i], added[i + 1]) end
      packed = table.concat(packed)
    end
    call('SETRANGE', key, header + log.stored * RECORD, packed)
  end
  local dropped = head >= DROP_FROM and 2 * head >= tail and head or 0
  local numbers = pack(
    '<ddddddd', head - dropped, tail - dropped, log.total, log.last, log.shift, log.first, log.before
  )
  if dropped > 0 then
    local kept = call('GETRANGE', key, header + head * RECORD, header + tail * RECORD - 1)
    call('PSETEX', key, q.ttl, numbers .. kept)
  else
    call('SETRANGE', key, 0, numbers)
    call('PEXPIRE', key, q.ttl)
  end
end

-- [giving back]

-- Drop the records from `tail` on
local function cut_log(log, tail)
  if tail <= log.stored then
    log.stored, log.added = tail, {}
  else
    for i = #log.added, 2 * (tail - log.stored) + 1, -1 do log.added[i] = nil end
  end
  log.tail = tail
end

-- Give back the last `cost` units
local function refund(_, log, _, _, cost)
  local total = max(log.before, log.total - cost)
  local low, high = log.head, log.tail -- low becomes the first record that begins with the units taken back
  if total > log.before then
    low = max(low + 1, high - cost)
    while low < high do
      local middle = floor((low + high) / 2)
      local _, before = log_record(log, middle)
      if before >= total then high = middle else low = middle + 1 end
    end
    log.last = log_record(log, low - 1)
  end
  cut_log(log, low)
  log.total = total
  return log
end

-- Give back `cost` units of the charge at `charged`, if it is among the last records. Those after it move up.
local function take_back(_, log, _, _, cost, charged)
  local at, lowest, later = log.tail - 1, max(log.head, log.tail - LOOK_BACK), {}
  local time, before, units_end = nil, nil, log.total
  while at >= lowest do
    time, before = log_record(log, at)
    if time + log.shift <= charged then break end
    later[#later + 1], later[#later + 2] = before, time
    units_end, at = before, at - 1
  end
  if at < lowest or time + log.shift ~= charged then return end
  local taken = min(cost, units_end - before)
  local kept = taken < units_end - before
  cut_log(log, kept and at + 1 or at)
  for i = #later, 1, -2 do
    log.added[#log.added + 1], log.added[#log.added + 2] = later[i], later[i - 1] - taken
  end
  log.tail, log.total = log.stored + #log.added / 2, log.total - taken
  if log.tail > log.head then
    log.last = log_record(log, log.tail - 1)
    log.first, log.before = log_record(log, log.head)
  end
  return log
end
