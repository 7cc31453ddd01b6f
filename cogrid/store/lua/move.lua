-- move: a waiting task goes to a queue where it is served. Counts nothing. A chore stays, or fails
-- with its worker.
-- include: clock check events wake task turns queue worker terminal requeue complete hold
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 from  4 to  5 run_id  6 window_ms  7 ghost_after_ms
--         8 start_timeout_ms  9 own_queue_wait_ms  10 pool_wait_ms  11 evidence
-- reply   {'ok', reason, queue} | {'failed', reason} | {'moved_on'} | {'held'}
local id, from = ARGV[2], ARGV[3]
local task = load(id)
if not task or task.state ~= 'pending' or task.queue ~= from then return {'moved_on'} end

local function newest(a, b, c)
  return math.max(tonumber(a or '0'), tonumber(b or '0'), tonumber(c or '0'))
end

local function grounds_of_worker(owner)
  local key = worker_key(owner)
  local hash = redis.call('HMGET', key, 'state', 'polled_at', 'freed_at', 'hello_at', 'slots',
    'wanted', 'pool')
  if not hash[1] then return 'dead_worker' end
  local doubt = holding(ARGV[5], tonumber(ARGV[6]))
  if not leased(owner) then return doubt and 'held' or 'dead_worker' end
  if hash[1] == 'draining' or hash[1] == 'away' or is_draining(hash[6]) then return 'not_ready' end
  -- A worker that has come back in another pool does not look into the queue of its old one.
  if hash[7] and hash[7] ~= pool_of(from) then return 'not_ready' end
  if hash[1] == 'starting' then
    local since = now - tonumber(hash[4] or '0')
    return since > tonumber(ARGV[8]) and not doubt and 'ghost_pending' or 'not_ready'
  end
  local free = tonumber(hash[5] or '0') - redis.call('SCARD', key .. ':tasks')
    - redis.call('SCARD', key .. ':revoked')
  if free > 0 then
    if now - newest(hash[2], hash[3], hash[4]) <= tonumber(ARGV[7]) then return nil end
    return doubt and 'held' or 'ghost_pending'
  end
  return now - tonumber(task.queued_at) >= tonumber(ARGV[9]) and 'worker_full' or nil
end

local function grounds()
  local owner = owner_of(from)
  if owner then return grounds_of_worker(owner) end
  return now - tonumber(task.queued_at) >= tonumber(ARGV[10]) and 'better_pool' or nil
end

local reason = grounds()
if not reason then return {'moved_on'} end
if reason == 'held' then return {'held'} end

local function fail_chore()
  if reason ~= 'dead_worker' and reason ~= 'ghost_pending' then return {'moved_on'} end
  need_end(task)
  if refused then return redis.error_reply(refused) end
  if completed(task) then return {'moved_on'} end
  local message = 'worker ' .. owner_of(from) .. ' is gone (' .. reason .. ')'
  conclude(task, 'failed', {code = 'worker_gone', message = message}, true)
  return {'failed', reason}
end
if CHORES[task.kind] then return fail_chore() end

local queue = fit_queue(ARGV[4], task)
if queue == from then return {'moved_on'} end
need_hash(KEYS[1])
need_stream(out_key(id))
need_queue(from)
need_queue(queue)
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end
if completed(task) then return {'moved_on'} end

local owner = owner_of(from)
emit(task, '*', 'kind', 'moved', 'worker', owner or '', 'reason', reason, 'queue', queue)
put(queue, task, true)
redis.call('HSET', KEYS[1], 'queue', queue, 'reason', reason)
leave(from, task)
tell(task.followers, id)
event('moved', id, owner, '', reason .. ' ' .. ARGV[11])
return {'ok', reason, queue}
