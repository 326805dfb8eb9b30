-- The most common case: the window goes on and has room. The time to live that its first charge set is long enough.
local packed = call('GET', key)
if packed and #packed == 32 then
  local start, prev, cur = struct.unpack('<ddd', packed)
  local limit, period, grain = struct.unpack('<ddd', ARGV[1], 17)
  if cur > 0 and prev <= limit and start == now - now % period then
    local left = limit - cur
    if prev > 0 then
      local width = period / grain
      left = div(limit * width - prev * (width - floor((now - start) / grain)), width) - cur
    end
    if cost <= left then
      call('SETRANGE', key, '16', struct.pack('<d', cur + cost))
      return struct.pack('<ll', left - cost, 2 * period + start - now)
    end
  end
end
