-- reap: a run is taken from a worker that is dead, was replaced, or makes no progress.
-- include: clock check events wake task turns queue worker terminal requeue complete hold
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 token  4 queue that it should go to  5 message if text was sent
--         (or it is a chore)  6 message if its recoveries are spent  7 run_id  8 window_ms
-- reply   {'requeued', reason, queue} | {'failed', reason} | {'dead', reason} | {'moved_on'}
--         | {'held'}
local id, token = ARGV[2], ARGV[3]
local task = load(id)
if not task or task.state ~= 'running' or task.token ~= token then return {'moved_on'} end

local function grounds()
  local instance = redis.call('HGET', worker_key(task.worker), 'instance')
  if instance and instance ~= instance_of(token) then return 'restarted' end
  if holding(ARGV[7], tonumber(ARGV[8])) then return 'held' end
  if not leased(task.worker) then return 'dead_worker' end
  local due = redis.call('ZSCORE', P .. 'grid:due', id)
  if due and tonumber(due) <= now then return 'zombie_running' end
  return nil
end

local reason = grounds()
if not reason then return {'moved_on'} end
if reason == 'held' then return {'held'} end
local queue = fit_queue(ARGV[4], task)
need_requeue(task, queue)
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on'} end

if reason == 'zombie_running' and redis.call('EXISTS', worker_key(task.worker)) == 1 then
  redis.call('HINCRBY', worker_key(task.worker), 'zombies', 1)
end
if CHORES[task.kind] then
  local code = reason == 'zombie_running' and 'timeout' or 'worker_gone'
  conclude(task, 'failed', {code = code, message = ARGV[5]}, true)
  return {'failed', reason}
end
if said(task) then
  conclude(task, 'failed', {code = 'broken_stream', message = ARGV[5]}, true)
  return {'failed', reason}
end
local recoveries = task.recoveries + 1
if recoveries > task.max_recoveries then
  conclude(task, 'dead', {code = 'recoveries_spent', message = ARGV[6]}, true)
  return {'dead', reason}
end
-- A prompt that took two workers with it runs alone from now on.
local fields = {'recoveries', int(recoveries), 'solo', recoveries >= 2 and '1' or '0'}
if reason == 'zombie_running' then
  fields[#fields + 1] = 'avoid'
  fields[#fields + 1] = task.worker
end
requeue(task, queue, reason, true, fields)
event('reaped', id, task.worker, token, reason)
return {'requeued', reason, queue}
