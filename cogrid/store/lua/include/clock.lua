-- The one clock: Redis TIME, read once a script, in ms. P is the prefix of every key.
local P = ARGV[1]
local stamp = redis.call('TIME')
local now = tonumber(stamp[1]) * 1000 + math.floor(tonumber(stamp[2]) / 1000)

local unpack = unpack or table.unpack

-- Whole numbers as text: Lua's own conversion rounds at 14 digits, a queue's score has 16.
local NOW = string.format('%d', now)
local function int(number)
  return number == now and NOW or string.format('%d', number)
end

-- Year, month, day of a Unix day number (proleptic Gregorian, after H. Hinnant's days algorithm).
local function civil(days)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
    - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return yoe + era * 400 + (month <= 2 and 1 or 0), month,
    doy - math.floor((153 * mp + 2) / 5) + 1
end

local function day()
  return string.format('%04d-%02d-%02d', civil(math.floor(now / 86400000)))
end

local function iso()
  local second = math.floor(now / 1000) % 86400
  return string.format('%sT%02d:%02d:%02dZ', day(), math.floor(second / 3600),
    math.floor(second / 60) % 60, second % 60)
end
