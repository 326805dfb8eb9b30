-- Decides a batch of asks, each over several rules, all or nothing: the mirror of algorithms.py, number for number.
--
-- ARGV[1]    the lines (quotas): per line, separated by spaces, 7 numbers:
--            algorithm, limit, period_us, grain_us, leak, unit, capacity, life_us, shadow(0/1)
-- ARGV[2]    how many rules an ask has (R)
-- ARGV[3]    "" (every ask is a check of cost 1, by the server's clock, of lines 1..R) or per ask, separated by
--            spaces: op, cost, now_us (-1: the server's clock), line numbers (R of them, from 1)
-- KEYS       R keys per ask
-- Reply: 7 whole numbers per ask: allowed, rule (from 1), remaining, reset_us, retry_us, delay_us, shadow bit mask
--
-- All keys are read at once, changed here and written once at the end, so a hot key costs one read and one write a batch.
-- A state is packed doubles: bucket (time, debt), fixed window (start, count), sliding counter (start, prev, cur), log
-- (the times, oldest first). Whole numbers below 2^53 are exact. Every write sets the key's time to live.

local FIXED, LOG, COUNTER, TOKEN, LEAKY, QUEUE = 1, 2, 3, 4, 5, 6
local CHECK, PEEK, REFUND = 0, 1, 2
local floor, max = math.floor, math.max
local pack, unpack_ = struct.pack, struct.unpack

local lines, numbers = {}, {}
for number in string.gmatch(ARGV[1], '%S+') do numbers[#numbers + 1] = tonumber(number) end
for i = 1, #numbers, 9 do
  lines[#lines + 1] = {
    algorithm = numbers[i], limit = numbers[i + 1], period = numbers[i + 2], grain = numbers[i + 3],
    leak = numbers[i + 4], unit = numbers[i + 5], capacity = numbers[i + 6], life = numbers[i + 7],
    shadow = numbers[i + 8] == 1,
  }
end
local R = tonumber(ARGV[2])
local asks = nil
if ARGV[3] ~= '' then
  asks = {}
  for number in string.gmatch(ARGV[3], '%S+') do asks[#asks + 1] = tonumber(number) end
end
local clock = redis.call('TIME')
local server_now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

local function div_up(a, b) return -floor(-a / b) end
-- a / b rounds; near whole numbers it may round up to one too many: mend it exactly
local function div(a, b)
  local q = floor(a / b)
  if q * b > a then return q - 1 end
  if (q + 1) * b <= a then return q + 1 end
  return q
end
div_up = function(a, b) return -div(-a, b) end

-- Each algorithm: (line, state or nil, now, cost) -> allowed, remaining, reset, retry, delay, new state or nil

local function fixed_window(q, s, now, cost)
  local start = now - now % q.period
  local before, count = start, 0
  if s then before, count = s[1], s[2] end
  local moved = before - start > q.period
  if before > start and not moved then
    start = before
    now = before
  elseif before < start then
    count = 0
  end
  local reset = start + q.period - now
  if count + cost <= q.limit then
    local used = count + cost
    return true, q.limit - used, used > 0 and reset or 0, 0, 0, { start, used }
  end
  return false, q.limit - count, reset, reset, 0, moved and { start, count } or nil
end

local function counter_reset(q, prev, cur, into)
  if cur > 0 then return 2 * q.period - into end
  if prev > 0 then return q.period - into end
  return 0
end

local function sliding_counter(q, s, now, cost)
  local start = now - now % q.period
  local before, prev, cur = start, 0, 0
  if s then before, prev, cur = s[1], s[2], s[3] end
  local moved = before - start > 2 * q.period
  if before > start and not moved then
    start = before
    now = before
  elseif before < start then
    prev = (start - before == q.period) and cur or 0
    cur = 0
  end
  local width, into = q.period / q.grain, floor((now - start) / q.grain)
  local left = max(0, div(q.limit * width - prev * (width - into), width) - cur)
  if cost <= left then
    cur = cur + cost
    return true, left - cost, counter_reset(q, prev, cur, now - start), 0, 0, { start, prev, cur }
  end
  local room, opens = q.limit - cur - cost, nil
  if room >= 0 then
    opens = width - div(room * width, prev)
  else
    opens = 2 * width - div((q.limit - cost) * width, cur)
  end
  local reset = counter_reset(q, prev, cur, now - start)
  return false, left, reset, start + opens * q.grain - now, 0, moved and { start, prev, cur } or nil
end

local function sliding_log(q, s, now, cost)
  local times = s or {}
  local n = #times
  local back = n > 0 and times[n] - now or 0
  local moved = back > q.period
  if moved then
    local shifted = {}
    for i = 1, n do shifted[i] = times[i] - back end
    times = shifted
  elseif back > 0 then
    now = now + back
  end
  local low, high = 1, n + 1 -- the first time still inside the window
  while low < high do
    local middle = floor((low + high) / 2)
    if times[middle] <= now - q.period then low = middle + 1 else high = middle end
  end
  local live = n - low + 1
  local left = q.limit - live
  if cost <= left then
    local kept = {}
    for i = low, n do kept[i - low + 1] = times[i] end
    for _ = 1, cost do kept[#kept + 1] = now end
    return true, left - cost, #kept > 0 and kept[#kept] + q.period - now or 0, 0, 0, kept
  end
  local retry = times[low + cost - left - 1] + q.period - now
  return false, left, times[n] + q.period - now, retry, 0, moved and times or nil
end

local function bucket(q, s, now, cost)
  local full = q.capacity * q.unit
  local before, debt = now, 0
  if s then before, debt = s[1], s[2] end
  local moved = before - now > q.life
  if before > now and not moved then
    now = before
  elseif before < now then
    debt = now - before >= q.life and 0 or max(0, debt - (now - before) * q.leak)
  end
  local owed = debt + cost * q.unit
  if owed <= full then
    local delay = q.algorithm == QUEUE and div_up(debt, q.leak) or 0
    return true, div(full - owed, q.unit), div_up(owed, q.leak), 0, delay, { now, owed }
  end
  local retry = div_up(owed - full, q.leak)
  return false, div(full - debt, q.unit), div_up(debt, q.leak), retry, 0, moved and { now, debt } or nil
end

local algorithms = { fixed_window, sliding_log, sliding_counter, bucket, bucket, bucket }

local function give_back(q, s, now, cost)
  if not s then return nil end
  local _, _, _, _, _, current = algorithms[q.algorithm](q, s, now, 0)
  if q.algorithm == FIXED then return { current[1], max(0, current[2] - cost) } end
  if q.algorithm == COUNTER then
    return { current[1], max(0, current[2] - max(0, cost - current[3])), max(0, current[3] - cost) }
  end
  if q.algorithm == LOG then
    local kept = {}
    for i = 1, #current - cost do kept[i] = current[i] end
    return kept
  end
  return { current[1], max(0, current[2] - cost * q.unit) }
end

-- States of this batch, by key: read once, written once.

local states, dirty, order = {}, {}, {}

local function read_states()
  local raw = {}
  for first = 1, #KEYS, 1000 do
    local last = math.min(first + 999, #KEYS)
    local part = redis.call('MGET', unpack(KEYS, first, last))
    for i = 1, #part do raw[first + i - 1] = part[i] end
  end
  for i = 1, #KEYS do
    local packed = raw[i]
    if packed and states[KEYS[i]] == nil then
      local s = {}
      for at = 1, #packed, 8 do s[#s + 1] = unpack_('<d', packed, at) end
      states[KEYS[i]] = s
    end
  end
end

local function put(key, s, q, now)
  states[key] = s
  if not dirty[key] then order[#order + 1] = key end
  dirty[key] = { q, now }
end

local function write_states()
  for i = 1, #order do
    local key = order[i]
    local s, q, now = states[key], dirty[key][1], dirty[key][2]
    local parts = {}
    for at = 1, #s do parts[at] = pack('<d', s[at]) end
    if #parts == 0 then
      redis.call('DEL', key)
    else
      redis.call('SET', key, table.concat(parts), 'PX', math.ceil(q.life / 1000) + 1000)
    end
  end
end

local reply = {}

local function decide(first_key, op, cost, now, line_of)
  local refused, at, tightest = false, 1, nil
  local results, mask, delay_all = {}, 0, 0
  for r = 1, R do
    local q, key = lines[line_of(r)], KEYS[first_key + r - 1]
    local s = states[key]
    if op == REFUND then
      local after = give_back(q, s, now, cost)
      if after then put(key, after, q, now) end
      s = after
    end
    local allowed, remaining, reset, retry, delay, after =
      algorithms[q.algorithm](q, s, now, op == REFUND and 1 or cost)
    results[r] = { allowed, remaining, reset, retry, delay, after, s }
    if not allowed then
      if q.shadow then
        mask = mask + 2 ^ (r - 1)
      else
        refused = true
      end
    end
  end
  local judged = false
  for r = 1, R do
    local q, key, result = lines[line_of(r)], KEYS[first_key + r - 1], results[r]
    local charge = op == CHECK and not refused
    if result[1] and not charge then -- told as it stands, uncharged
      local _, remaining, reset = algorithms[q.algorithm](q, result[7], now, 0)
      result[2], result[3] = remaining, reset
    elseif result[6] and op == CHECK and (charge or not result[1]) then
      put(key, result[6], q, now)
    end
    if not q.shadow then
      if refused then
        if not result[1] and (tightest == nil or result[4] > tightest) then at, tightest = r, result[4] end
      else
        if tightest == nil or result[2] < tightest then at, tightest = r, result[2] end
        delay_all = max(delay_all, result[5])
      end
      judged = true
    end
  end
  local told = results[at]
  local n = #reply
  reply[n + 1] = refused and 0 or 1
  reply[n + 2] = at
  reply[n + 3] = told[2]
  reply[n + 4] = told[3]
  reply[n + 5] = judged and told[4] or 0
  reply[n + 6] = refused and 0 or delay_all
  reply[n + 7] = mask
end

read_states()
local plain = function(r) return r end
for i = 0, #KEYS / R - 1 do
  if asks == nil then
    decide(i * R + 1, CHECK, 1, server_now, plain)
  else
    local base = i * (3 + R)
    local now = asks[base + 3]
    if now < 0 then now = server_now end
    decide(i * R + 1, asks[base + 1], asks[base + 2], now, function(r) return asks[base + 3 + r] end)
  end
end
write_states()
return reply
