-- The end of a task, whoever makes it: the end entry first, then the commit, then what is old.
-- include needs: clock, check, events, wake, task, turns, queue
local DEAD_KEEP_MS = 7 * 86400000
local REVOKED_KEEP_MS = 3600000
local USAGE_KEEP_MS = 35 * 86400000
-- Fields of a day, about 2 MB: three for each user, key, model and worker that came together.
local USAGE_MOST = 15000

local function usage_key() return P .. 'usage:' .. day() end

-- given: by its worker, whose word ends it; what is taken from one needs more.
local function need_end(task, given)
  need_stream(out_key(task.id))
  need_hash(task_key(task.id))
  need_string(body_key(task.id), 'DEL')
  need_zset(P .. 'grid:finished')
  need_zset(P .. 'grid:due')
  need_zset(P .. 'grid:clients')
  need_hash(P .. 'grid:totals')
  need_stream(P .. 'grid:events')
  if task.state == 'pending' then need_queue(task.queue) end
  if task.state == 'running' then
    need_set(held_key(task))
    need_hash(P .. 'worker:' .. task.worker)
    need_hash(usage_key())
  end
  if given then return end
  need_zset(P .. 'grid:dead')
  need_zset(P .. 'grid:workers')
  if task.state == 'running' then need_set(P .. 'worker:' .. task.worker .. ':revoked') end
end

-- The run leaves its worker. revoke: it was taken away, so the slot stays taken until the worker
-- has let go (its token stands in :revoked); unless the hash is another process's. Without a hash
-- the process may be about to say hello again. A chore has no slot.
local function revoke(task)
  if CHORES[task.kind] then return inbox(task.worker, task.id) end
  local worker = P .. 'worker:' .. task.worker
  local instance = redis.call('HGET', worker, 'instance')
  if not instance or instance == instance_of(task.token) then
    local lease = tonumber(redis.call('ZSCORE', P .. 'grid:workers', task.worker) or '0')
    -- How long it has not let go: another token must not make that younger.
    local first = redis.call('EXISTS', worker .. ':revoked') == 0
    redis.call('SADD', worker .. ':revoked', task.token)
    redis.call('PEXPIRE', worker .. ':revoked', int(math.max(lease - now, 0) + REVOKED_KEEP_MS))
    if instance and first then redis.call('HSET', worker, 'revoked_at', int(now)) end
  end
  inbox(task.worker, task.id)
end

local function release(task, freed)
  local worker = P .. 'worker:' .. task.worker
  redis.call('SREM', held_key(task), task.id)
  if CHORES[task.kind] then return end
  if freed and redis.call('HGET', worker, 'instance') == instance_of(task.token) then
    redis.call('HSET', worker, 'freed_at', int(now), 'zombies', '0')
  end
end

-- Requests, tokens and milliseconds of the day, one field each for every user, key, model and worker
-- that came together (with tabs between): whoever wants the sum of one of them adds up. Clients
-- invent users, so a full day counts those that are new to it as one.
local function count_usage(task, requests, tokens, ms)
  local key = usage_key()
  local rest = '\t' .. table.concat({task.key or '', task.model, task.worker, ''}, '\t')
  local who = (task.user or '') .. rest
  local full = redis.call('HLEN', key) >= USAGE_MOST
  if full and not redis.call('HGET', key, who .. 'requests') then who = '(others)' .. rest end
  local seen = requests > 0 and redis.call('HINCRBY', key, who .. 'requests', requests)
  if tokens > 0 then redis.call('HINCRBY', key, who .. 'tokens', int(tokens)) end
  if ms > 0 then redis.call('HINCRBY', key, who .. 'ms', int(ms)) end
  if not seen or seen == requests then redis.call('PEXPIRE', key, USAGE_KEEP_MS) end
end

local function tokens_in(usage)
  local tokens = 0
  for count in string.gmatch(usage or '', '_tokens":(%d+)') do tokens = tokens + tonumber(count) end
  return tokens
end

local function keep_ms_of(state, keep_ms) return state == 'dead' and DEAD_KEEP_MS or keep_ms end

-- Nothing stands for an ended task any more, and its keys begin to end. grid:due comes last: as long
-- as it stands there, a pass meets it and does this again.
local function retire(id, state, keep_ms)
  redis.call('PEXPIRE', task_key(id), int(keep_ms))
  redis.call('PEXPIRE', out_key(id), int(keep_ms))
  if state == 'dead' then
    redis.call('PEXPIRE', body_key(id), int(keep_ms))
  else
    redis.call('DEL', body_key(id))
  end
  redis.call('ZREM', P .. 'grid:clients', id)
  redis.call('ZREM', P .. 'grid:due', id)
end

-- End entries carry: state, finish_reason, usage (JSON), message, code, worker.
-- taken: the run was taken from its worker (cancel, reap), not given back by it (finish).
local function conclude(task, state, last, taken)
  local keep = keep_ms_of(state, task.keep_ms)
  local running = task.state == 'running'
  if not last.written then
    emit(task, LAST, 'kind', 'end', 'state', state,
      'finish_reason', last.finish_reason or '', 'usage', last.usage or '',
      'message', last.message or '', 'code', last.code or '', 'worker', task.worker or '')
  end
  redis.call('ZADD', P .. (state == 'dead' and 'grid:dead' or 'grid:finished'), int(now + keep),
    task.id)
  if running and taken then revoke(task) end

  redis.call('HSET', task_key(task.id), 'state', state, 'finished_at', int(now), 'token', '',
    'last_token', taken and '' or task.token or '', 'error', last.message or '',
    'code', last.code or '', 'run', int(task.run), 'attempts', int(task.attempts))

  if task.state == 'pending' then leave(task.queue, task) end
  if running then
    release(task, not taken)
    if not CHORES[task.kind] then
      count_usage(task, 1, tokens_in(last.usage), now - tonumber(task.claimed_at or now))
    end
  end
  redis.call('HINCRBY', P .. 'grid:totals', 'queued_bytes', int(-task.size))
  redis.call('HINCRBY', P .. 'grid:totals', state, 1)
  retire(task.id, state, keep)
  tell(task.followers, task.id)
  event(state, task.id, task.worker, task.token, last.code or last.finish_reason)
end
