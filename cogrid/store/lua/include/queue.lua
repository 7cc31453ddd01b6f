-- A queue and everything that hangs on it: its turns, its marker, its place in grid:queues.
-- include needs: clock, check, wake, turns

local function pool_of(queue) return string.match(queue, '^tasks:([^:]+):') end

-- nil for a shared queue
local function owner_of(queue)
  if string.find(queue, '^tasks:[^:]+:shared:') then return nil end
  return string.match(queue, '^tasks:[^:]+:(.+)$')
end

local function need_queue(queue)
  need_zset(P .. queue)
  need_hash(turns_key(queue))
  need_zset(P .. 'wake:' .. queue)
  need_zset(P .. 'grid:queues')
end

-- first: at the turn that is served now (a task that comes back), else at its user's turn.
local function put(queue, task, first)
  if redis.call('EXISTS', P .. queue) == 0 then
    redis.call('ZADD', P .. 'grid:queues', int(now), queue)
  end
  if first then
    enter_first(queue, task.id, task.band)
  else
    enter(queue, task.id, task.band, task.user)
  end
  local owner = owner_of(queue)
  if owner then inbox(owner, task.id) else arm(queue) end
end

local function tidy_queue(queue)
  if redis.call('EXISTS', P .. queue) == 0 then
    redis.call('DEL', P .. 'wake:' .. queue, turns_key(queue))
    -- Last: as long as the queue is listed, a pass meets it and does this again.
    redis.call('ZREM', P .. 'grid:queues', queue)
    return true
  end
  return false
end

-- Leaves without having been served (cancelled, expired, moved): the user's turn comes back.
local function leave(queue, task)
  if redis.call('ZREM', P .. queue, task.id) == 1 and not tidy_queue(queue) then
    forget_turn(queue, task.band, task.user, 1)
  end
end
