local floor, fmod = math.floor, math.fmod

-- Division of whole numbers up to 2^53, rounded down exactly: a / b in doubles may come out one too high or low
local function div(a, b)
  local rest = fmod(a, b)
  if rest < 0 then return (a - rest) / b - 1 end
  return (a - rest) / b
end
