-- Delete the room if its epoch is still this one. KEYS: room. ARGV: now, epoch.
if get('epoch') == tonumber(ARGV[2]) then redis.call('DEL', room) end
return 1
