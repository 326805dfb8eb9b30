-- Decides a batch of requests, each over several rules, all or nothing. Same arithmetic as algorithms.py.
--
-- KEYS       one per rule of each request, in order
-- ARGV[1]    the algorithm of each quota slot, one digit each: an index of `algorithms`
-- ARGV[2]    the quota slots, packed in SLOT bytes each
-- ARGV[3]    R: every request is a check of one unit, by the server's clock, of slots 1..R. 0: ARGV[4] has the requests
-- ARGV[4]    packed doubles per request: op, cost, now_us (-1: the server's clock), number of rules, slot per rule
-- Reply: 7 packed whole numbers per request: see REPLY. With ARGV[4] also the server's time, last.
--
-- Every state is read once, changed here and written once at the end, so a hot key costs one read and one write per
-- batch. A state is up to three values a, b, c; what they are is said by each algorithm. `a == nil` is a key that was
-- never seen, or holds something else. Every write sets the key's time to live.

local CHECK, REFUND, RESERVE, TAKE_BACK, CHARGE, RESET = 0, 2, 3, 4, 5, 6
local SLOT = 56

local slots, has_logs = {}, false
for at = 1, #ARGV[1] do
  local algorithm = algorithms[tonumber(string.sub(ARGV[1], at, at))]
  slots[at] = algorithm.slot(ARGV[2], SLOT * (at - 1) + 1)
  slots[at].algorithm = algorithm
  has_logs = has_logs or algorithm.header ~= nil
end
local R = tonumber(ARGV[3])
local time = call('TIME')
local server_now = time[1] * 1000000 + time[2]

-- Requests

local request_count, ops, costs, nows, firsts, widths, slot_of_key = #KEYS / R, {}, {}, {}, {}, {}, {}
if R > 0 then
  for i = 1, #KEYS do slot_of_key[i] = slots[(i - 1) % R + 1] end
else
  local packed, at, first = ARGV[4], 1, 1
  request_count = 0
  while at <= #packed do
    local i = request_count + 1
    request_count = i
    ops[i], costs[i], nows[i], widths[i] = unpack_('<dddd', packed, at)
    if nows[i] < 0 then nows[i] = server_now end
    firsts[i] = first
    at = at + 32
    for r = 0, widths[i] - 1 do
      slot_of_key[first + r] = slots[unpack_('<d', packed, at)]
      at = at + 8
    end
    first = first + widths[i]
  end
end

-- States by key

local as, bs, cs, written, order = {}, {}, {}, {}, {}

local function read_states()
  local keys, slots_of_keys = KEYS, slot_of_key
  if has_logs then
    keys, slots_of_keys = {}, {}
    for i = 1, #KEYS do
      local key, q = KEYS[i], slot_of_key[i]
      if not q.algorithm.header then
        keys[#keys + 1], slots_of_keys[#keys + 1] = key, q
      elseif as[key] == nil then
        as[key] = q.algorithm.read(q, key, call('GETRANGE', key, 0, q.algorithm.header - 1))
      end
    end
  end
  for first = 1, #keys, 1000 do
    local raw = call('MGET', unpack(keys, first, min(first + 999, #keys)))
    for i = 1, #raw do
      if raw[i] then
        local key, q = keys[first + i - 1], slots_of_keys[first + i - 1]
        as[key], bs[key], cs[key] = q.algorithm.read(q, key, raw[i])
      end
    end
  end
end

local function change_state(key, q, a, b, c)
  as[key], bs[key], cs[key] = a, b, c
  if not written[key] then
    order[#order + 1] = key
    written[key] = q
  end
end

local function return_units(q, key, now, cost)
  if as[key] == nil then return end
  local _, _, _, _, _, a, b, c = q.algorithm.judge(q, as[key], bs[key], cs[key], now, 0)
  a, b, c = q.algorithm.refund(q, a, b, c, cost)
  change_state(key, q, a, b, c)
end

-- Charge units whether or not they fit. A window has no debt: it is used up at most.
local function charge_units(q, key, now, cost)
  local _, left, a, b, c
  _, left, _, _, _, a, b, c = q.algorithm.judge(q, as[key], bs[key], cs[key], now, 0)
  if q.algorithm.charge then
    a, b, c = q.algorithm.charge(q, a, b, c, cost)
  else
    _, _, _, _, _, a, b, c = q.algorithm.judge(q, as[key], bs[key], cs[key], now, min(cost, left))
  end
  change_state(key, q, a, b, c)
end

local function forget_state(q, key)
  call('DEL', key)
  as[key], bs[key], cs[key] = nil, nil, nil
  if q.algorithm.header then as[key] = q.algorithm.read(q, key, '') end
end

-- Take back what a reserve charged at `charged`: only what of it still counts now, so nobody gains by it
local function take_back(q, key, cost, charged)
  if as[key] == nil then return end
  local _, _, _, _, _, a, b, c = q.algorithm.judge(q, as[key], bs[key], cs[key], server_now, 0)
  a, b, c = q.algorithm.take_back(q, a, b, c, cost, charged, server_now)
  if a then change_state(key, q, a, b, c) end
end

-- Decisions. The verdicts of the current request are by rule, and reused for every request.

local allowed, remaining, reset, retry, delay = {}, {}, {}, {}, {}
local new_a, new_b, new_c = {}, {}, {}
local reply = {}

local function decide(first, width, op, cost, now)
  local refused, mask, charges, asked = false, 0, op == CHECK or op == RESERVE, cost
  if op == REFUND or op >= TAKE_BACK then asked = 1 end
  local judged_at = op == TAKE_BACK and server_now or now
  for r = 1, width do
    local q, key = slot_of_key[first + r - 1], KEYS[first + r - 1]
    if op == REFUND then
      return_units(q, key, now, cost)
    elseif op == TAKE_BACK then
      take_back(q, key, cost, now)
    elseif op == CHARGE then
      charge_units(q, key, now, cost)
    elseif op == RESET then
      forget_state(q, key)
    end
    allowed[r], remaining[r], reset[r], retry[r], delay[r], new_a[r], new_b[r], new_c[r] =
      q.algorithm.judge(q, as[key], bs[key], cs[key], judged_at, asked)
    if not allowed[r] then
      if q.shadow == 1 then mask = mask + 2 ^ (r - 1) else refused = true end
    end
  end
  local at, tightest, delays, judged = 1, nil, 0, false
  for r = 1, width do
    local q, key = slot_of_key[first + r - 1], KEYS[first + r - 1]
    if allowed[r] and (refused or not charges) then -- report the uncharged state
      local _
      _, remaining[r], reset[r] = q.algorithm.judge(q, as[key], bs[key], cs[key], judged_at, 0)
    elseif new_a[r] and charges then
      change_state(key, q, new_a[r], new_b[r], new_c[r])
    end
    if q.shadow ~= 1 then
      judged = true
      if refused then
        if not allowed[r] and (tightest == nil or retry[r] > tightest) then at, tightest = r, retry[r] end
      else
        if tightest == nil or remaining[r] < tightest then at, tightest = r, remaining[r] end
        delays = max(delays, delay[r])
      end
    end
  end
  return pack(
    REPLY, refused and 0 or 1, at, remaining[at], reset[at], judged and retry[at] or 0, refused and 0 or delays, mask
  )
end

-- The most common batch: one rule, and every request is for one unit now
local function check_one_rule(q)
  local judge, shadow = q.algorithm.judge, q.shadow == 1
  for i = 1, #KEYS do
    local key = KEYS[i]
    local yes, left, resets, retries, delays, a, b, c = judge(q, as[key], bs[key], cs[key], server_now, 1)
    if a then change_state(key, q, a, b, c) end
    if shadow then
      reply[i] = pack(REPLY, 1, 1, left, resets, 0, 0, yes and 0 or 1)
    else
      reply[i] = pack(REPLY, yes and 1 or 0, 1, left, resets, retries, delays, 0)
    end
  end
end

read_states()
if R == 1 then
  check_one_rule(slots[1])
elseif R > 1 then
  for i = 1, request_count do reply[i] = decide(R * (i - 1) + 1, R, CHECK, 1, server_now) end
else
  for i = 1, request_count do reply[i] = decide(firsts[i], widths[i], ops[i], costs[i], nows[i]) end
  reply[request_count + 1] = pack('<l', server_now)
end
for i = 1, #order do
  local key = order[i]
  if as[key] ~= nil then written[key].algorithm.write(written[key], key, as[key], bs[key], cs[key]) end
end
return table.concat(reply)
