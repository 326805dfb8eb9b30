-- The most common case: no request leaves the window, time went on, there is room, and nothing is to be dropped.
local packed = call('GETRANGE', key, '0', '55') -- the header
if #packed == 56 then
  local head, tail, total, last, shift, first, before = struct.unpack('<ddddddd', packed)
  local ttl, _, limit, period = struct.unpack('<dddd', ARGV[1])
  local time, left = now - shift, limit - (total - before)
  local goes_on = head < tail and last < time and first > time - period and (head < 64 or 2 * head < tail)
  if goes_on and cost > 0 and cost <= left then
    call('SETRANGE', key, 56 + 16 * tail, struct.pack('<dd', time, total))
    call('SETRANGE', key, '8', struct.pack('<ddd', tail + 1, total + cost, time))
    call('PEXPIRE', key, ttl)
    return struct.pack('<ll', left - cost, period)
  end
end
