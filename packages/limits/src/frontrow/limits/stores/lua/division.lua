local floor = math.floor

-- Division of whole numbers, rounded down exactly: a / b in doubles may come out one too high or low
local function div(a, b)
  local q = floor(a / b)
  if q * b > a then return q - 1 end
  if (q + 1) * b <= a then return q + 1 end
  return q
end
