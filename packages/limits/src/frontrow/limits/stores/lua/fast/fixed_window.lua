-- The most common case: the window goes on and has room. The time to live that its first charge set is long enough.
local packed = call('GET', key)
if packed and #packed == 16 then
  local start, count = struct.unpack('<dd', packed)
  local limit, period = struct.unpack('<dd', ARGV[1], 17)
  if count > 0 and count + cost <= limit and start == now - now % period then
    call('SETRANGE', key, '8', struct.pack('<d', count + cost))
    return struct.pack('<ll', limit - count - cost, start + period - now)
  end
end
