-- The most common case: the window goes on and has room. The time to live that its first charge set is long enough.
local packed = call('GET', key)
if packed and #packed == 16 then
  local start, count = unpack_('<dd', packed)
  local _, _, limit, period = unpack_('<dddd', ARGV[1])
  if count > 0 and count + cost <= limit and start == now - now % period then
    call('SETRANGE', key, 8, pack('<d', count + cost))
    return pack(REPLY, 1, 1, limit - count - cost, start + period - now, 0, 0, 0)
  end
end
