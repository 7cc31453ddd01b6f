-- requeue: the operator has a task go again: a run is taken back from its worker, a back-off ends.
-- Counts nothing. Text that a streaming client may have seen forbids a second run.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 token of the run that is meant ('' a back-off)  4 queue that it should
--         go to  5 by whom
-- reply   {'ok', queue} | {'moved_on', state} | {'said'} | {'unknown'}
local id, token = ARGV[2], ARGV[3]
local task = load(id)
if not task then return {'unknown'} end
if CHORES[task.kind] then return {'moved_on', task.state} end
if task.state ~= (token ~= '' and 'running' or 'waiting') or (task.token or '') ~= token then
  return {'moved_on', task.state}
end
local queue = fit_queue(ARGV[4], task)
need_requeue(task, queue)
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on', redis.call('HGET', KEYS[1], 'state')} end

if token == '' then
  put(queue, task, true)
  redis.call('HSET', KEYS[1], 'state', 'pending', 'queue', queue, 'queued_at', int(now), 'reason',
    'operator')
  redis.call('ZADD', P .. 'grid:due', queue_limit(task), id)
  tell(task.followers, id)
else
  if said(task) then return {'said'} end
  requeue(task, queue, 'operator', true, {'avoid', task.worker})
end
event('requeued', id, task.worker, token, 'by ' .. ARGV[5])
return {'ok', queue}
