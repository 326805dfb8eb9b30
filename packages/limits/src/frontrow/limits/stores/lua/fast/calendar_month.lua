-- Months have no shorter way: only the state is read.
local packed = call('GET', key)
