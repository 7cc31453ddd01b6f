-- drop: index entries that no hash confirms; a script was stopped between its first write and its
-- commit. Claim and renew do this for living workers, a pass for everybody else.
-- include: clock check events wake task turns queue worker
-- KEYS[1] zset or set  the queue, or worker:<id>:tasks
-- ARGV    1 prefix  2 queue or ''  3 worker or '' (one of both)  4… ids
-- reply   number of entries dropped
local queue, worker = ARGV[2], ARGV[3]
local chores = worker_key(worker) .. ':chores'
if queue ~= '' then
  need_queue(queue)
else
  need_set(KEYS[1])
  need_set(chores)
end
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end

local function confirmed(id)
  local task = redis.call('HMGET', task_key(id), 'state', 'queue', 'worker')
  if queue ~= '' then return task[1] == 'pending' and task[2] == queue end
  return task[1] == 'running' and task[3] == worker
end

local function take_out(id)
  if queue ~= '' then return redis.call('ZREM', KEYS[1], id) == 1 end
  return redis.call('SREM', KEYS[1], id) + redis.call('SREM', chores, id) > 0
end

local dropped = 0
for i = 4, #ARGV do
  if redis.call('EXISTS', task_key(ARGV[i])) == 0 then drop_traces(ARGV[i]) end
  if not confirmed(ARGV[i]) and take_out(ARGV[i]) then
    dropped = dropped + 1
    event('repaired', ARGV[i], worker, '', queue ~= '' and 'not in ' .. queue or 'not run here')
  end
end
if queue ~= '' then tidy_queue(queue) end
return dropped
