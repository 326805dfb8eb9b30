-- The most common case: the window goes on and has room. The time to live that its first charge set is long enough.
local packed = call('GET', key)
if packed and #packed == 32 then
  local start, prev, cur, counted_under = unpack_('<dddd', packed)
  local _, _, limit, period, grain = unpack_('<ddddd', ARGV[1])
  if cur > 0 and counted_under == limit and start == now - now % period then
    local width, left = period / grain, limit - cur
    if prev > 0 then left = div(limit * width - prev * (width - floor((now - start) / grain)), width) - cur end
    if cost <= left then
      call('SETRANGE', key, 16, pack('<d', cur + cost))
      return pack(REPLY, 1, 1, left - cost, 2 * period + start - now, 0, 0, 0)
    end
  end
end
