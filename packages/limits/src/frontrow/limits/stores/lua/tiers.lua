-- Writes or reads the tiers of clients. Every change has a version that only grows.
--
-- KEYS[1]  hash: client -> tier
-- KEYS[2]  sorted set: client -> version of its newest change
-- KEYS[3]  sorted set: removed client -> version of its removal, the newest MAX_REMOVED of them
-- KEYS[4]  hash: birth (the first version), version (the newest), floor (the newest forgotten removal)
-- ARGV     "put" client tier | "remove" client | "read" birth floor version (what the last reply said; 0 0 0 at first)
-- Reply of "read": birth, floor, version up to which the reader knows all, 1 if there is more to read, 1 if the reader
-- must first forget all it knows, and then per change: client, tier ("" if removed). The others reply with the version.
--
-- A reader must forget all when the store has lost its memory (another birth), or when a removal that it has not read
-- was forgotten here (another floor, above its version).

local MAX_REMOVED, PAGE = 10000, 1000
local tiers, changes, removed, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call

local function text(number) return string.format('%.0f', number) end
local function known(field) return tonumber(call('HGET', meta, field) or '0') end

local function next_version()
  local time = call('TIME')
  local version = math.max(tonumber(time[1]) * 1000000 + tonumber(time[2]), known('version') + 1)
  call('HSETNX', meta, 'birth', text(version))
  call('HSET', meta, 'version', text(version))
  return text(version)
end

if ARGV[1] == 'put' then
  local version = next_version()
  call('HSET', tiers, ARGV[2], ARGV[3])
  call('ZADD', changes, version, ARGV[2])
  call('ZREM', removed, ARGV[2])
  return version
elseif ARGV[1] == 'remove' then
  local version = next_version()
  call('HDEL', tiers, ARGV[2])
  call('ZREM', changes, ARGV[2])
  call('ZADD', removed, version, ARGV[2])
  if call('ZCARD', removed) > MAX_REMOVED then
    local oldest = call('ZRANGE', removed, 0, 0, 'WITHSCORES')
    call('HSET', meta, 'floor', text(tonumber(oldest[2])))
    call('ZREM', removed, oldest[1])
  end
  return version
end

local birth, floor, newest = known('birth'), known('floor'), known('version')
local from, forget = tonumber(ARGV[4]), 0
if birth ~= tonumber(ARGV[2]) or (floor ~= tonumber(ARGV[3]) and from < floor) then from, forget = 0, 1 end
local page = call('ZRANGEBYSCORE', changes, '(' .. text(from), '+inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
local more = #page == 2 * PAGE and 1 or 0
local upto = more == 1 and tonumber(page[#page]) or newest
local reply = { text(birth), text(floor), text(upto), more, forget }
for i = 1, #page, 2 do
  reply[#reply + 1] = page[i]
  reply[#reply + 1] = call('HGET', tiers, page[i]) or ''
end
if from > 0 then
  local gone = call('ZRANGEBYSCORE', removed, '(' .. text(from), text(upto))
  for i = 1, #gone do
    reply[#reply + 1] = gone[i]
    reply[#reply + 1] = ''
  end
end
return reply
