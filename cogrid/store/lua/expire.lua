-- expire: a task has waited for as long as it may. A limit that passed while the reaper held back
-- or was away is moved on by that time instead.
-- include: clock check events wake task turns queue worker terminal requeue complete hold
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 message  4 run_id  5 window_ms
-- reply   {'ok'} | {'moved_on'} | {'held'} | {'postponed', until (ms)}
local id = ARGV[2]
local task = load(id)
local due = tonumber(redis.call('ZSCORE', P .. 'grid:due', id) or 'inf')
if not task or task.state ~= 'pending' or due > now then return {'moved_on'} end
-- A claim that was stopped before its commit has left the run's deadline behind.
local limit = task.queue_timeout_ms > 0 and tonumber(task.queued_at) + task.queue_timeout_ms
if not limit or limit > now then
  need_zset(P .. 'grid:due')
  need_stream(P .. 'grid:events')
  if refused then return redis.error_reply(refused) end
  redis.call('ZADD', P .. 'grid:due', limit and int(limit) or '+inf', id)
  event('repaired', id, '', '', 'due before its limit')
  return {'moved_on'}
end
if holding(ARGV[4], tonumber(ARGV[5])) then return {'held'} end
local hold = redis.call('HMGET', P .. 'grid:reaper', 'hold_from', 'hold_until')
local from, till = tonumber(hold[1] or '0'), tonumber(hold[2] or '0')
need_end(task)
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on'} end
if due >= from and due < till then
  redis.call('ZADD', P .. 'grid:due', int(due + till - from), id)
  return {'postponed', int(due + till - from)}
end
conclude(task, 'expired', {code = 'queue_timeout', message = ARGV[3]}, true)
return {'ok'}
