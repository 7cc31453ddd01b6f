-- What a script may believe of a worker.
-- include needs: clock
local function worker_key(id) return P .. 'worker:' .. id end

-- string: the process of that name that was struck off
local function fence_key(id) return worker_key(id) .. ':fenced' end

-- Ids of what it runs and of its chores. key: its hash.
local function held_by(key)
  local ids = redis.call('SMEMBERS', key .. ':tasks')
  for _, id in ipairs(redis.call('SMEMBERS', key .. ':chores')) do ids[#ids + 1] = id end
  return ids
end

local function leased(id)
  local lease = redis.call('ZSCORE', P .. 'grid:workers', id)
  return lease and tonumber(lease) >= now
end

-- By the wish's state, not by the word: an operator may be called so.
local function is_draining(wanted)
  return string.find(wanted or '', '"state":"drain"', 1, true) ~= nil
end

-- A worker's own queue takes a task only while the worker is ready, wanted and its lease runs.
local function takes_own(id)
  local state = redis.call('HMGET', worker_key(id), 'state', 'wanted')
  return state[1] == 'ready' and not is_draining(state[2]) and leased(id)
end
