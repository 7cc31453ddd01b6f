-- Hints. A marker says "this queue has something", an inbox "this task has news". Each member is
-- set once however often it is added; a lost one costs one renew or one tick.
local INBOX_MS = 60000

local function arm(queue)
  redis.call('ZADD', P .. 'wake:' .. queue, int(now), 'armed')
end

-- Nothing depends on an inbox, so one that is refused stops nothing.
local function inbox(name, id)
  local key = P .. 'wake:@' .. name
  local added = redis.pcall('ZADD', key, int(now), id)
  if type(added) == 'number' then redis.pcall('PEXPIRE', key, INBOX_MS) end
end

-- followers: "<coordinator>:<n> …", one a connection.
local function tell(followers, id)
  if not followers or followers == '' then return end
  local told = {}
  for name in string.gmatch(followers, '([^: ]+):%d+') do
    if not told[name] then
      told[name] = true
      inbox(name, id)
    end
  end
end
