-- Drop the room if it is still of this epoch. KEYS: room. ARGV: now, epoch.
if get('epoch') == tonumber(ARGV[2]) then redis.call('DEL', room) end
return 1
