-- promote: a task's back-off is over; it waits in a queue again.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 queue
-- reply   {'ok', queue} | {'moved_on'}
local id = ARGV[2]
local task = load(id)
local due = redis.call('ZSCORE', P .. 'grid:due', id)
if not task or task.state ~= 'waiting' or not due or tonumber(due) > now then
  return {'moved_on'}
end
local queue = fit_queue(ARGV[3], task)
need_requeue(task, queue)
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on'} end
put(queue, task, true)
redis.call('HSET', KEYS[1], 'state', 'pending', 'queue', queue, 'queued_at', int(now))
-- After the commit: a task that waits with the limit of one that is queued would wait for ever.
redis.call('ZADD', P .. 'grid:due', queue_limit(task), id)
tell(task.followers, id)
event('promoted', id, '', '', queue)
return {'ok', queue}
