-- Applies one request to the permits of one key. The same as KeyPermits in permits.py.
--
-- KEYS[1]  sorted set: permit -> end of its life (µs)
-- KEYS[2]  sorted set: permit -> when it joined the line (µs)
-- KEYS[3]  sorted set: permit -> end of its place in line (µs)
-- ARGV     op, permit, limit, ttl_us, max_waiting, now_us (-1: the server's clock), place_ttl_us
-- Reply: done (0 or 1), permits in use, callers ahead in line
--
-- Scores are whole numbers below 2^53, which doubles represent exactly. All keys expire by themselves.

local TAKE, WAIT, RENEW, RELEASE = 0, 1, 2, 3
local holders, line, places = KEYS[1], KEYS[2], KEYS[3]
local op, permit, limit = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local ttl, max_waiting, now, place_ttl = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local call = redis.call

if now < 0 then
  local time = call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function text(number) return string.format('%.0f', number) end

local function leave_line(who)
  call('ZREM', line, who)
  call('ZREM', places, who)
end

-- Every write prolongs the life of its key. A key outlives its newest entry by a second.
local function write(key, score, member, life)
  call('ZADD', key, text(score), member)
  local wanted = math.ceil(life / 1000) + 1000
  if call('PTTL', key) < wanted then call('PEXPIRE', key, wanted) end
end

call('ZREMRANGEBYSCORE', holders, '-inf', text(now))
local ended = call('ZRANGEBYSCORE', places, '-inf', text(now))
for i = 1, #ended do leave_line(ended[i]) end

local done, ahead = 0, 0
local held = call('ZSCORE', holders, permit)
if op == RELEASE then
  done = call('ZREM', holders, permit)
  leave_line(permit)
elseif op == RENEW then
  if held then
    write(holders, now + ttl, permit, ttl)
    done = 1
  end
elseif op == TAKE or op == WAIT then
  local place = call('ZRANK', line, permit)
  ahead = place or call('ZCARD', line)
  if held or call('ZCARD', holders) + ahead < limit then
    leave_line(permit)
    write(holders, now + ttl, permit, ttl)
    done, ahead = 1, 0
  elseif op == WAIT and (place or ahead < max_waiting) then
    if not place then
      local last = call('ZRANGE', line, -1, -1, 'WITHSCORES')
      write(line, math.max(now, last[2] and tonumber(last[2]) + 1 or now), permit, place_ttl)
    else
      call('PEXPIRE', line, math.ceil(place_ttl / 1000) + 1000)
    end
    write(places, now + place_ttl, permit, place_ttl)
  end
end
return { done, call('ZCARD', holders), ahead }
