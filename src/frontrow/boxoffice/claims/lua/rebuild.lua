-- One step of filling a section anew from the ledger under a higher epoch; until its last step the section refuses.
--
-- KEYS   the section's epoch key, then the seats of this step
-- ARGV   epoch, step (begin, fill, finish), then for fill: pairs of position and value|lifetime of the taken seats
-- Answer the epoch this step worked for, or the higher one that overtook it.
local epoch, step = tonumber(ARGV[1]), ARGV[2]
local now = redis.call('GET', KEYS[1])
local current = now and tonumber((string.gsub(now, 'r', ''))) or 0
if step == 'begin' then
  if current >= epoch then return current end
  redis.call('SET', KEYS[1], 'r' .. ARGV[1])
  return epoch
end
if now ~= 'r' .. ARGV[1] then return current end
if step == 'fill' then
  for k = 2, #KEYS do redis.call('UNLINK', KEYS[k]) end
  for a = 3, #ARGV, 3 do
    local key, px = KEYS[2 + tonumber(ARGV[a])], tonumber(ARGV[a + 2])
    if px > 0 then
      redis.call('SET', key, ARGV[a + 1], 'PX', px)
    else
      redis.call('SET', key, ARGV[a + 1])
    end
  end
else
  redis.call('SET', KEYS[1], ARGV[1])
end
return epoch
