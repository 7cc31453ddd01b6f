-- A run that is over without an end goes back to a queue, as the one that is served next.
-- include needs: clock, check, events, wake, task, turns, queue, worker, terminal

-- The queue that was asked for, or the pool's shared one where that worker cannot take it.
local function fit_queue(queue, task)
  local owner = owner_of(queue)
  if owner and not takes_own(owner) then
    return 'tasks:' .. pool_of(queue) .. ':shared:' .. task.model
  end
  return queue
end

local function shared_of(task)
  return 'tasks:' .. pool_of(task.queue) .. ':shared:' .. task.model
end

local function queue_limit(task)
  return task.queue_timeout_ms > 0 and int(now + task.queue_timeout_ms) or '+inf'
end

local function need_requeue(task, queue)
  need_end(task)
  need_queue(queue)
end

-- fields: what else the commit writes (name, value, …). taken: see conclude.
local function requeue(task, queue, reason, taken, fields)
  if task.last_kind ~= 'reset' then
    emit(task, '*', 'kind', 'reset', 'worker', task.worker, 'reason', reason, 'queue', queue)
  end
  redis.call('ZADD', P .. 'grid:due', queue_limit(task), task.id)
  put(queue, task, true)
  if taken then revoke(task) end
  redis.call('HSET', task_key(task.id), 'state', 'pending', 'queue', queue, 'token', '',
    'last_token', taken and '' or task.token, 'queued_at', int(now), 'reason', reason, 'n', '0',
    'run', int(task.run), unpack(fields))
  release(task, not taken)
  tell(task.followers, task.id)
end
