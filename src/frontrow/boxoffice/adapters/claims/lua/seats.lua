-- Claims, extensions, releases and puts that arrived together. Each is all-or-nothing; they run in their order.
--
-- KEYS   the epoch key of each section, then the seats of each request in turn (all declared: safe on a Cluster)
-- ARGV   now (16 digits of microseconds), number of sections, the expected epoch of each section,
--        the heads of the requests packed as op, section, seats, lifetime, start and length of the owner mark;
--        then one value per request: fan|placed_at_us|booking|expires_at_us|kind (kind h held, t tentative, s sold)
-- Reply  one item per request: 1: done; "!<epoch>": the store has another epoch, nothing was done; a list of
--        "<position>:<value>" lines: refused, others have these seats (position counts from 0 within the request).
--
-- A recorded expiry is compared with the caller's time, never with this server's clock. PX only removes what is no longer
-- used, long after the recorded expiry.
local CLAIM, EXTEND, RELEASE, PUT = 1, 2, 3, 4
local now, sections = ARGV[1], tonumber(ARGV[2])
local call, sub, find = redis.call, string.sub, string.find

local stale = {}
for s = 1, sections do
  local epoch = call('GET', KEYS[s])
  if epoch ~= ARGV[2 + s] then stale[s] = '!' .. (epoch or '') end
end

local function write(key, value, px)
  if px > 0 then call('SET', key, value, 'PX', px) else call('SET', key, value) end
end

local function release(first, last, mine)
  local freed = 0
  for k = first, last do
    local was = call('GET', KEYS[k])
    if was and find(was, mine, 1, true) then
      call('UNLINK', KEYS[k])
      freed = freed + 1
    end
  end
  return freed
end

local function claim(op, first, last, mine, value, px)
  local taken, sold
  for k = first, last do
    local was = call('GET', KEYS[k])
    if was then
      local kind = sub(was, -1)
      if find(was, mine, 1, true) then
        if kind == 's' then sold = sold or {}; sold[k] = true end -- a late repeat must not unsell it
      elseif kind == 's' or sub(was, -18, -3) > now then
        taken = (taken and taken .. '\n' or '') .. (k - first) .. ':' .. was
      elseif op == EXTEND then
        taken = (taken and taken .. '\n' or '') .. (k - first) .. ':'
      end
    elseif op == EXTEND then
      taken = (taken and taken .. '\n' or '') .. (k - first) .. ':'
    end
  end
  if taken then return taken end
  for k = first, last do
    if not (sold and sold[k]) then write(KEYS[k], value, px) end
  end
  return 1
end

local heads = ARGV[3 + sections]
local arg, key, at, ends = 3 + sections, sections, 1, #heads
local answers, asked = {}, 0
while at <= ends do
  local op, section, count, px, from, length
  op, section, count, px, from, length, at = struct.unpack('>BHHI4BB', heads, at)
  arg = arg + 1
  asked = asked + 1
  local value, first, last = ARGV[arg], key + 1, key + count
  key = last
  local mine = sub(value, from, from + length - 1)
  if op == RELEASE then
    answers[asked] = release(first, last, mine)
  elseif stale[section] then
    answers[asked] = stale[section]
  elseif op == PUT then
    for k = first, last do write(KEYS[k], value, px) end
    answers[asked] = 1
  else
    answers[asked] = claim(op, first, last, mine, value, px)
  end
end
return answers
