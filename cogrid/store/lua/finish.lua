-- finish: a run is over, by its worker's word; the same call may claim the next task.
-- include: clock check events wake task turns queue worker terminal requeue complete claim
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 token  4 outcome: done | failed | back (handed back unharmed) | lost
--         (confirms that a revoked run has been stopped)  5 n of data, or without data of the last
--         entry that must be there (0: none)  6 data (last text, JSON, or '')  7 finish_reason  8 usage (JSON)  9 message  10 code  11 retry (1: another attempt may
--         help)  12 backoff_ms  13 worker, then nothing or the arguments of a claim from its
--         instance on
-- reply   {'ok'|'already'|'lost'|'gap', state or last n, reply of the claim or nothing}
local id, token, outcome = ARGV[2], ARGV[3], ARGV[4]

local function confirm(task)
  local worker = worker_key(ARGV[13])
  if redis.call('SREM', worker .. ':revoked', token) == 1 then
    if redis.call('EXISTS', worker) == 1 then redis.call('HSET', worker, 'freed_at', int(now)) end
    if task and tokens_in(ARGV[8]) > 0 then
      local revoked = {user = task.user, key = task.key, model = task.model, worker = ARGV[13]}
      count_usage(revoked, 0, tokens_in(ARGV[8]), 0)
    end
  end
end

local function last_text(task)
  if ARGV[6] == '' or tonumber(ARGV[5]) <= task.n then return end
  say(id, int(task.run), ARGV[5], ARGV[6])
  task.n = task.n + 1
end

local function fail_or_wait(task)
  local message = {message = ARGV[9], code = ARGV[10], usage = ARGV[8]}
  task.attempts = task.attempts + 1
  if ARGV[11] ~= '1' or said(task) or task.attempts >= task.max_attempts then
    conclude(task, 'failed', message, false)
    return 'failed'
  end
  emit(task, '*', 'kind', 'reset', 'worker', task.worker, 'reason', 'attempt_failed', 'queue', '')
  redis.call('ZADD', P .. 'grid:due', int(now + tonumber(ARGV[12])), id)
  redis.call('HSET', task_key(id), 'state', 'waiting', 'token', '', 'last_token', token, 'avoid',
    task.worker, 'reason', 'attempt_failed', 'error', ARGV[9], 'n', '0', 'attempts',
    int(task.attempts))
  release(task, true)
  tell(task.followers, id)
  event('retried', id, task.worker, token, ARGV[9])
  return 'waiting'
end

local function hand_back(task)
  if CHORES[task.kind] or said(task) then
    local code = CHORES[task.kind] and 'worker_gone' or 'broken_stream'
    conclude(task, 'failed', {message = ARGV[9], code = code, usage = ARGV[8]}, false)
    return 'failed'
  end
  local queue = shared_of(task)
  need_queue(queue)
  if refused then return nil end
  requeue(task, queue, 'handed_back', false, {})
  event('handed_back', id, task.worker, token, '')
  return 'pending'
end

local DONE = {'state', 'token', 'run', 'n', 'worker', 'user', 'key', 'model', 'followers', 'claimed_at',
  'size', 'keep_ms', 'attempts', 'kind'}

local function settle()
  local task = outcome == 'done' and glance(id, DONE) or load(id)
  if not task or task.token ~= token or task.state ~= 'running' or completed(task) then
    if refused then return nil end
    task = load(id)
    local already = task and task.last_token == token and outcome ~= 'lost'
    need_hash(worker_key(ARGV[13]))
    need_set(worker_key(ARGV[13]) .. ':revoked')
    need_hash(usage_key())
    if refused then return nil end
    confirm(task)
    return already and 'already' or 'lost', task and task.state or ''
  end
  if outcome == 'lost' then return 'lost', task.state end
  local before = tonumber(ARGV[5]) - (ARGV[6] ~= '' and 1 or 0)
  if before > task.n then return 'gap', task.n end
  need_end(task, true)
  if refused then return nil end
  last_text(task)
  if outcome == 'done' then
    conclude(task, 'done', {finish_reason = ARGV[7], usage = ARGV[8]}, false)
    return 'ok', 'done'
  end
  if outcome == 'back' then return 'ok', hand_back(task) end
  return 'ok', fail_or_wait(task)
end

local status, state = settle()
if refused then return redis.error_reply(refused) end
if not ARGV[14] or status == 'gap' then return {status, state} end
local claimed = claim(ARGV[13], 14)
return claimed.err and claimed or {status, state, claimed}
