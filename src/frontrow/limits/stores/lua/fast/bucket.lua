-- The most common case: the bucket was counted under the same quota, time went on, and there is room.
local packed = call('GET', key)
if packed and #packed == 32 then
  local before, debt, counted_unit, counted_capacity = unpack_('<dddd', packed)
  local ttl, shadow, capacity, life, leak, unit, queue = unpack_('<ddddddd', ARGV[1])
  if counted_unit == unit and counted_capacity == capacity and before <= now and now - before < life then
    debt = max(0, debt - (now - before) * leak)
    local owed = debt + cost * unit
    if owed <= capacity * unit then
      call('PSETEX', key, ttl, pack('<dddd', now, owed, unit, capacity))
      local delay = queue == 1 and shadow == 0 and -div(-debt, leak) or 0
      return pack(REPLY, 1, 1, div(capacity * unit - owed, unit), -div(-owed, leak), 0, delay, 0)
    end
  end
end
