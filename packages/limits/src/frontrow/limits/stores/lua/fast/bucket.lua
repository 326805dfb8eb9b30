-- The most common case: the bucket was counted under the same quota, time went on, and there is room.
local packed = call('GET', key)
if packed and #packed == 32 then
  local before, debt, counted_unit, counted_capacity = struct.unpack('<dddd', packed)
  local ttl, shadow, capacity, life, leak, unit, queue = struct.unpack('<ddddddd', ARGV[1])
  if counted_unit == unit and counted_capacity == capacity and before <= now and now - before < life then
    debt = debt - (now - before) * leak
    if debt < 0 then debt = 0 end
    local need, room = cost * unit, capacity * unit - debt
    if need <= room and (queue == 0 or shadow == 1 or debt == 0) then
      call('PSETEX', key, ttl, struct.pack('<dddd', now, debt + need, unit, capacity))
      return struct.pack('<ll', div(room - need, unit), -div(-debt - need, leak))
    end
  end
end
