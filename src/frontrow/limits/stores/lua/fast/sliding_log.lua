local packed = call('GETRANGE', key, 0, 55) -- the header
