-- cancel: a task that is not over is over at once, queued, waiting or running.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 code (cancelled | orphaned)  4 message (who and why)
--         5 '' or run_id  6 window_ms: with a run id, only when its client's lease has run out
-- reply   {'ok', state it was in} | {'over', state} | {'unknown'} | {'moved_on'} | {'held'}
-- include: hold
local id = ARGV[2]
local task = load(id)
if not task then
  need_zset(P .. 'grid:clients')
  if not refused and ARGV[5] ~= '' and redis.call('ZSCORE', P .. 'grid:clients', id) then
    drop_traces(id)
    event('repaired', id, '', '', 'client of no task')
  end
  return {'unknown'}
end
if ARGV[5] ~= '' then
  if holding(ARGV[5], tonumber(ARGV[6])) then return {'held'} end
  local lease = redis.call('ZSCORE', P .. 'grid:clients', id)
  if not lease or tonumber(lease) > now then return {'moved_on'} end
end
if completed(task) then task = load(id) end
if refused then return redis.error_reply(refused) end
if TERMINAL[task.state] then
  redis.call('ZREM', P .. 'grid:clients', id)
  return {'over', task.state}
end
need_end(task)
if refused then return redis.error_reply(refused) end
conclude(task, 'cancelled', {code = ARGV[3], message = ARGV[4]}, true)
return {'ok', task.state}
