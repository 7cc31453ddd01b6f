-- fail-homeless: nobody can serve this task's model any more, and has not been able to for a while.
-- include: clock check events wake task turns queue worker terminal requeue complete hold
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 message  4 home_grace_ms  5 run_id  6 window_ms
-- reply   {'ok'} | {'moved_on'} | {'held'}
local id = ARGV[2]
local task = load(id)
if not task or CHORES[task.kind] or (task.state ~= 'pending' and task.state ~= 'waiting') then return {'moved_on'} end
local stamp = redis.call('ZSCORE', P .. 'grid:models', task.model)
if stamp and now - tonumber(stamp) <= tonumber(ARGV[4]) then return {'moved_on'} end
-- A model that came and went between two passes is judged by the task's own wait.
if now - tonumber(task.queued_at or '0') <= tonumber(ARGV[4]) and not stamp then
  return {'moved_on'}
end
if holding(ARGV[5], tonumber(ARGV[6])) then return {'held'} end
need_end(task)
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on'} end
conclude(task, 'failed', {code = 'no_home', message = ARGV[3]}, true)
return {'ok'}
