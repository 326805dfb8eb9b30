-- Appends a frame to an event's log and returns the frames that the caller has not seen, in one atomic step.
-- KEYS: head (hash: epoch, seq), ring (list of stream lines)
-- ARGV: epoch to begin with if there is none, body ('' for nothing), caller's epoch, caller's seq, ring size, channel,
--       seconds to keep both keys
-- Reply: {epoch, seq, list of lines | false}. Numbers are sent as text, because replies would truncate them.
local head = redis.call('HMGET', KEYS[1], 'epoch', 'seq')
local epoch, seq = head[1], tonumber(head[2])
if not epoch then
  epoch, seq = ARGV[1], 0
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'seq', '0')
  redis.call('DEL', KEYS[2])
end
if ARGV[2] ~= '' then
  local line = string.format('%s %.0f %.0f %s', epoch, seq, seq + 1, ARGV[2])
  seq = seq + 1
  redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', seq))
  redis.call('RPUSH', KEYS[2], line)
  redis.call('LTRIM', KEYS[2], -tonumber(ARGV[5]), -1)
  redis.call('PUBLISH', ARGV[6], line)
end
redis.call('EXPIRE', KEYS[1], ARGV[7])
redis.call('EXPIRE', KEYS[2], ARGV[7])
local lines = false
local missing = seq - tonumber(ARGV[4])
if ARGV[3] == epoch and missing >= 0 and missing <= redis.call('LLEN', KEYS[2]) then
  lines = missing == 0 and {} or redis.call('LRANGE', KEYS[2], -missing, -1)
end
return {epoch, string.format('%.0f', seq), lines}
