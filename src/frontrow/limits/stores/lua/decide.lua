-- Decides a batch of requests, each over several rules, all or nothing. Same arithmetic as algorithms.py.
--
-- ARGV[1]    the quota slots, 9 numbers each, separated by spaces:
--            algorithm, limit, period_us, grain_us, leak, unit, capacity, life_us, shadow (0 or 1)
-- ARGV[2]    the number of rules per request (R)
-- ARGV[3]    "" (every request is a check of cost 1, by the server's clock, of slots 1..R) or per request, separated
--            by spaces: op, cost, now_us (-1: the server's clock), slot numbers (R of them, from 1)
-- KEYS       R keys per request
-- Reply: 7 whole numbers per request: allowed, rule (from 1), remaining, reset_us, retry_us, delay_us, shadow bit mask
--
-- All keys are read at once, changed here and written once at the end, so a hot key costs one read and one write per
-- batch. A state is up to three numbers a, b, c, stored as packed doubles (whole numbers below 2^53 are exact):
-- bucket (time, debt), fixed window (start, count), sliding counter (start, previous, current). For the log, a is a
-- table of times. `a == nil` is a key that was never seen. Every write sets the key's time to live.

local FIXED, LOG, COUNTER, QUEUE = 1, 2, 3, 6
local CHECK, REFUND = 0, 2
local floor, max, ceil = math.floor, math.max, math.ceil
local pack, unpack_ = struct.pack, struct.unpack
local call = redis.call

-- Division of whole numbers, rounded down exactly: a / b in doubles may come out one too high or low
local function div(a, b)
  local q = floor(a / b)
  if q * b > a then return q - 1 end
  if (q + 1) * b <= a then return q + 1 end
  return q
end
local function div_up(a, b) return -div(-a, b) end

-- Each algorithm: (slot, a, b, c, now, cost) -> allowed, remaining, reset, retry, delay, new a (nil: unchanged), b, c

local function fixed_window(q, a, b, _, now, cost)
  local start = now - now % q.period
  local before, count = a or start, b or 0
  local moved = before - start > q.period
  if before > start and not moved then
    start, now = before, before
  elseif before < start then
    count = 0
  end
  local reset = start + q.period - now
  if count + cost <= q.limit then
    local used = count + cost
    return true, q.limit - used, used > 0 and reset or 0, 0, 0, start, used
  end
  if moved then return false, q.limit - count, reset, reset, 0, start, count end
  return false, q.limit - count, reset, reset, 0
end

local function counter_reset(q, prev, cur, into)
  if cur > 0 then return 2 * q.period - into end
  if prev > 0 then return q.period - into end
  return 0
end

local function sliding_counter(q, a, b, c, now, cost)
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
  local left = q.limit - cur
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
  if moved then return false, left, reset, retry, 0, start, prev, cur end
  return false, left, reset, retry, 0
end

local function sliding_log(q, a, _, _, now, cost)
  local times = a or {}
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
  local low, high = 1, n + 1 -- low becomes the first time still inside the window
  while low < high do
    local middle = floor((low + high) / 2)
    if times[middle] <= now - q.period then low = middle + 1 else high = middle end
  end
  local left = q.limit - (n - low + 1)
  if cost <= left then
    local kept = {}
    for i = low, n do kept[i - low + 1] = times[i] end
    for _ = 1, cost do kept[#kept + 1] = now end
    return true, left - cost, #kept > 0 and kept[#kept] + q.period - now or 0, 0, 0, kept
  end
  local retry = times[low + cost - left - 1] + q.period - now
  return false, left, times[n] + q.period - now, retry, 0, moved and times or nil
end

local function bucket(q, a, b, _, now, cost)
  local leak, unit = q.leak, q.unit
  local full = q.capacity * unit
  local before, debt = a or now, b or 0
  local moved = before - now > q.life
  if before > now and not moved then
    now = before
  elseif before < now then
    debt = now - before >= q.life and 0 or max(0, debt - (now - before) * leak)
  end
  local owed = debt + cost * unit
  if owed <= full then
    local delay = q.algorithm == QUEUE and div_up(debt, leak) or 0
    return true, div(full - owed, unit), div_up(owed, leak), 0, delay, now, owed
  end
  local remaining, reset, retry = div(full - debt, unit), div_up(debt, leak), div_up(owed - full, leak)
  if moved then return false, remaining, reset, retry, 0, now, debt end
  return false, remaining, reset, retry, 0
end

local algorithms = { fixed_window, sliding_log, sliding_counter, bucket, bucket, bucket }

-- Arguments

local slots, numbers = {}, {}
for number in string.gmatch(ARGV[1], '%S+') do numbers[#numbers + 1] = tonumber(number) end
for i = 1, #numbers, 9 do
  slots[#slots + 1] = {
    algorithm = numbers[i], limit = numbers[i + 1], period = numbers[i + 2], grain = numbers[i + 3],
    leak = numbers[i + 4], unit = numbers[i + 5], capacity = numbers[i + 6], life = numbers[i + 7],
    shadow = numbers[i + 8] == 1, judge = algorithms[numbers[i]], ttl = ceil(numbers[i + 7] / 1000) + 1000,
  }
end
local R = tonumber(ARGV[2])
local packed_requests = nil
if ARGV[3] ~= '' then
  packed_requests = {}
  for number in string.gmatch(ARGV[3], '%S+') do packed_requests[#packed_requests + 1] = tonumber(number) end
end
local time = call('TIME')
local server_now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local slot_of_rule = {} -- the slots of the current request, by rule
for r = 1, R do slot_of_rule[r] = slots[r] end

-- States of this batch by key: read once, written once

local as, bs, cs, written, order = {}, {}, {}, {}, {}

local function read_states()
  for first = 1, #KEYS, 1000 do
    local raw = call('MGET', unpack(KEYS, first, math.min(first + 999, #KEYS)))
    for i = 1, #raw do
      local packed = raw[i]
      if packed then
        local at = first + i - 1
        local key = KEYS[at]
        local rule = (at - 1) % R
        local slot = slots[packed_requests and packed_requests[floor((at - 1) / R) * (3 + R) + 4 + rule] or rule + 1]
        if slot.algorithm == LOG then
          local times = {}
          for byte = 1, #packed, 8 do times[#times + 1] = unpack_('<d', packed, byte) end
          as[key] = times
        elseif #packed == 24 then
          as[key], bs[key], cs[key] = unpack_('<ddd', packed)
        else
          as[key], bs[key] = unpack_('<dd', packed)
        end
      end
    end
  end
end

local function write_state(key, q, a, b, c)
  as[key], bs[key], cs[key] = a, b, c
  if not written[key] then
    order[#order + 1] = key
    written[key] = q
  end
end

local function write_states()
  for i = 1, #order do
    local key = order[i]
    local q, a = written[key], as[key]
    local packed
    if q.algorithm == LOG then
      local parts = {}
      for at = 1, #a do parts[at] = pack('<d', a[at]) end
      packed = table.concat(parts)
    elseif q.algorithm == COUNTER then
      packed = pack('<ddd', a, bs[key], cs[key])
    else
      packed = pack('<dd', a, bs[key])
    end
    if packed == '' then
      call('DEL', key)
    else
      call('SET', key, packed, 'PX', q.ttl)
    end
  end
end

local function return_units(q, key, now, cost)
  if as[key] == nil then return end
  local _, _, _, _, _, a, b, c = q.judge(q, as[key], bs[key], cs[key], now, 0)
  if q.algorithm == FIXED then
    b = max(0, b - cost)
  elseif q.algorithm == COUNTER then
    b, c = max(0, b - max(0, cost - c)), max(0, c - cost)
  elseif q.algorithm == LOG then
    local kept = {}
    for i = 1, #a - cost do kept[i] = a[i] end
    a = kept
  else
    b = max(0, b - cost * q.unit)
  end
  write_state(key, q, a, b, c)
end

-- The verdicts of the current request, by rule (reused for every request)
local allowed, remaining, reset, retry, delay = {}, {}, {}, {}, {}
local new_a, new_b, new_c = {}, {}, {}
local reply, replied = {}, 0

local function add_reply(yes, rule, left, resets, retries, delays, mask)
  reply[replied + 1], reply[replied + 2], reply[replied + 3], reply[replied + 4] = yes, rule, left, resets
  reply[replied + 5], reply[replied + 6], reply[replied + 7] = retries, delays, mask
  replied = replied + 7
end

local function decide(first, op, cost, now)
  local refused, mask = false, 0
  for r = 1, R do
    local q, key = slot_of_rule[r], KEYS[first + r - 1]
    if op == REFUND then return_units(q, key, now, cost) end
    allowed[r], remaining[r], reset[r], retry[r], delay[r], new_a[r], new_b[r], new_c[r] =
      q.judge(q, as[key], bs[key], cs[key], now, op == REFUND and 1 or cost)
    if not allowed[r] then
      if q.shadow then mask = mask + 2 ^ (r - 1) else refused = true end
    end
  end
  local at, tightest, delays, judged = 1, nil, 0, false
  for r = 1, R do
    local q, key = slot_of_rule[r], KEYS[first + r - 1]
    if allowed[r] and (refused or op ~= CHECK) then -- report the uncharged state
      local _
      _, remaining[r], reset[r] = q.judge(q, as[key], bs[key], cs[key], now, 0)
    elseif new_a[r] and op == CHECK then
      write_state(key, q, new_a[r], new_b[r], new_c[r])
    end
    if not q.shadow then
      judged = true
      if refused then
        if not allowed[r] and (tightest == nil or retry[r] > tightest) then at, tightest = r, retry[r] end
      else
        if tightest == nil or remaining[r] < tightest then at, tightest = r, remaining[r] end
        delays = max(delays, delay[r])
      end
    end
  end
  add_reply(refused and 0 or 1, at, remaining[at], reset[at], judged and retry[at] or 0, refused and 0 or delays, mask)
end

-- The most common batch: one rule, and every request is for one unit now
local function check_one_rule(q)
  local judge, shadow = q.judge, q.shadow
  for i = 1, #KEYS do
    local key = KEYS[i]
    local yes, left, resets, retries, delays, a, b, c = judge(q, as[key], bs[key], cs[key], server_now, 1)
    if a then write_state(key, q, a, b, c) end
    if shadow then
      add_reply(1, 1, left, resets, 0, 0, yes and 0 or 1)
    else
      add_reply(yes and 1 or 0, 1, left, resets, retries, delays, 0)
    end
  end
end

read_states()
if packed_requests == nil and R == 1 then
  check_one_rule(slots[1])
elseif packed_requests == nil then
  for first = 1, #KEYS, R do decide(first, CHECK, 1, server_now) end
else
  for i = 0, #KEYS / R - 1 do
    local base = i * (3 + R)
    local now = packed_requests[base + 3]
    for r = 1, R do slot_of_rule[r] = slots[packed_requests[base + 3 + r]] end
    decide(i * R + 1, packed_requests[base + 1], packed_requests[base + 2], now < 0 and server_now or now)
  end
end
write_states()
return reply
