-- One step of refilling a section from the ledger under a higher epoch. The section refuses until the last step.
--
-- KEYS   the section's epoch key, then the seats of this step
-- ARGV   epoch number, the epoch key's text when done, step (begin, fill, finish); for fill then triples of position,
--        value and lifetime of the taken seats
-- Reply  the epoch of this step, or the higher one that overtook it.
local epoch, text, step = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local is = redis.call('GET', KEYS[1])
local number = is and string.match(is, '^r?(%d+)')
if step == 'begin' then
  if number and tonumber(number) >= epoch then return number end
  redis.call('SET', KEYS[1], 'r' .. text)
  return ARGV[1]
end
if is ~= 'r' .. text then return number or '0' end
if step == 'fill' then
  for k = 2, #KEYS do redis.call('UNLINK', KEYS[k]) end
  for a = 4, #ARGV, 3 do
    local key, px = KEYS[2 + tonumber(ARGV[a])], tonumber(ARGV[a + 2])
    if px > 0 then
      redis.call('SET', key, ARGV[a + 1], 'PX', px)
    else
      redis.call('SET', key, ARGV[a + 1])
    end
  end
else
  redis.call('SET', KEYS[1], text)
end
return ARGV[1]
