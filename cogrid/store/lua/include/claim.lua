-- Claiming, alone or in the same call as a finish.
-- include needs: clock, check, events, wake, task, turns, queue, worker, terminal, requeue,
-- complete
local RATE_MS = 600000
local RATE_WEIGHT = 0.2
local HEAD = {'state', 'queue', 'user', 'run', 'solo', 'announce', 'followers', 'kind', 'model',
  'streamed', 'attempts', 'recoveries'}

-- Mean and variance (exponentially weighted) of the seconds between two claims of a queue that had
-- something all the while; active is when it was last served or became non-empty.
local function note_rate(queue, active)
  local key = P .. 'rate:' .. queue
  local seen = redis.call('HMGET', key, 'mean_s', 'var')
  local gap = math.max(0, (now - active) / 1000)
  local mean = tonumber(seen[1] or gap)
  local off = gap - mean
  redis.call('HSET', key, 'mean_s', string.format('%.4f', mean + RATE_WEIGHT * off), 'var',
    string.format('%.4f', (1 - RATE_WEIGHT) * (tonumber(seen[2] or '0') + RATE_WEIGHT * off * off)))
  redis.call('PEXPIRE', key, RATE_MS)
end

-- What is still held with this claim number: the answer to a claim whose reply was lost.
local function still_held(worker, instance, k)
  local held = {}
  for _, id in ipairs(held_by(worker_key(worker))) do
    local task = load(id)
    if task and instance_of(task.token) == instance and number_of(task.token) == k then
      held[#held + 1] = task
    end
  end
  table.sort(held, function(a, b) return a.token < b.token end)
  return held
end

local function runs_solo(key)
  local id = redis.call('SMEMBERS', key .. ':tasks')[1]
  return redis.call('HGET', task_key(id), 'solo') == '1'
end

local function handed(task)
  return {task.id, task.token, task.run, task.kind, task.model, task.streamed or '0',
    task.attempts, task.recoveries, redis.call('GET', body_key(task.id)) or ''}
end

-- The head of a queue that the hash confirms; entries that it does not are dropped.
local function confirmed_head(queue)
  while true do
    local head = redis.call('ZRANGE', P .. queue, 0, 0, 'WITHSCORES')
    if #head == 0 then return nil end
    need_hash(task_key(head[1]))
    need_stream(out_key(head[1]))
    if refused then return nil end
    local task = glance(head[1], HEAD)
    if task and task.state == 'pending' and task.queue == queue and not completed(task) then
      return task, tonumber(head[2])
    end
    if refused then return nil end
    if not task then drop_traces(head[1]) end
    if redis.call('ZREM', P .. queue, head[1]) == 1 then
      event('repaired', head[1], '', '', 'not in ' .. queue)
      tidy_queue(queue)
    end
  end
end

-- Band first, then a loaded model (unless another queue has waited starve_ms), then the queue that
-- was served longest ago. Scores of different queues are never compared.
local function better(a, b, starve_ms)
  if a.band ~= b.band then return a.band < b.band end
  local a_first = a.loaded or now - a.active > starve_ms
  local b_first = b.loaded or now - b.active > starve_ms
  if a_first ~= b_first then return a_first end
  return a.active < b.active
end

local function look(queue)
  queue.task, queue.score = confirmed_head(queue.name)
  if not queue.task then return false end
  queue.band = band_of(queue.score)
  queue.active = tonumber(redis.call('ZSCORE', P .. 'grid:queues', queue.name) or '0')
  return true
end

local function best_of(queues, alone, starve_ms)
  local best
  for _, queue in ipairs(queues) do
    -- Nothing behind a solo head while something runs: skipping it would starve it.
    local barred = queue.task and queue.task.solo == '1' and not alone
    if queue.task and not barred and (not best or better(queue, best, starve_ms)) then
      best = queue
    end
  end
  return best
end

local function take(worker, instance, k, index, queue, allowed_ms)
  local task = queue.task
  task.token = instance .. ':' .. int(k) .. ':' .. int(index)
  local again = task.run > 0
  task.run = math.max(task.run + 1, now)
  task.state, task.worker = 'running', worker

  redis.call('SADD', held_key(task), task.id)
  redis.call('ZADD', P .. 'grid:due', int(now + allowed_ms), task.id)
  emit(task, '0', 'kind', 'claimed', 'worker', worker, 'queue', queue.name)
  redis.call('HSET', task_key(task.id), 'state', 'running', 'token', task.token, 'worker', worker,
    'run', int(task.run), 'n', '0', 'claimed_at', int(now))
  redis.call('ZREM', P .. queue.name, task.id)
  if again then redis.call('HDEL', task_key(task.id), 'first_at') end

  serve(queue.name, queue.score, task.user)
  queue.empty = tidy_queue(queue.name)
  if not queue.empty then
    redis.call('ZADD', P .. 'grid:queues', int(now), queue.name)
  end
  if not CHORES[task.kind] then note_rate(queue.name, queue.active) end
  if task.announce == '1' then tell(task.followers, task.id) end
  event(again and 'claimed_again' or 'claimed', task.id, worker, task.token, queue.name)
end

local function need_claim(worker, queues)
  need_hash(worker_key(worker))
  need_set(worker_key(worker) .. ':tasks')
  need_zset(P .. 'grid:due')
  need_stream(P .. 'grid:events')
  for _, queue in ipairs(queues) do
    need_queue(queue.name)
    need_hash(P .. 'rate:' .. queue.name)
  end
end

-- Chores stand before everything else in the worker's own queue. They are taken whatever it runs,
-- also while it drains.
local function take_chores(worker, instance, k, queues, allowed_ms, reply)
  for _, queue in ipairs(queues) do
    while owner_of(queue.name) == worker and look(queue) and CHORES[queue.task.kind] do
      need_set(worker_key(worker) .. ':chores')
      need_string(body_key(queue.task.id))
      if refused then return end
      take(worker, instance, k, #reply, queue, allowed_ms)
      reply[#reply + 1] = handed(queue.task)
    end
  end
end

-- at: position in ARGV of instance, k, free, allowed_ms, starve_ms, number of queues, then
-- (queue, loaded 1|0) each. Replies {status} or {'ok', {handed}…}.
local function claim(worker, at)
  local instance, k = ARGV[at], tonumber(ARGV[at + 1])
  local allowed_ms, starve_ms = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local key = worker_key(worker)
  local hash = redis.call('HMGET', key, 'instance', 'state', 'slots', 'claim', 'wanted')
  if not hash[1] then return {'unknown'} end
  if hash[1] ~= instance then return {'superseded'} end

  local queues, depth = {}, 0
  for i = 1, tonumber(ARGV[at + 5]) do
    local name = ARGV[at + 4 + 2 * i]
    local size = redis.pcall('ZCARD', P .. name)
    if failed(size) then size = 1 end  -- need_claim says what it is instead of a queue
    if size > 0 then
      queues[#queues + 1] = {name = name, loaded = ARGV[at + 5 + 2 * i] == '1'}
      depth = depth + size
    end
  end
  need_claim(worker, queues)
  if refused then return redis.error_reply(refused) end

  -- A repeated claim is answered in every state: its worker must hear of what it was handed.
  local last, reply = tonumber(hash[4] or '0'), {'ok'}
  if k <= last then
    if leased(worker) then redis.call('HSET', key, 'polled_at', int(now)) end
    for _, task in ipairs(still_held(worker, instance, k)) do reply[#reply + 1] = handed(task) end
    return reply
  end
  if not leased(worker) then return {'renew'} end
  -- The number is remembered before anything is taken under it, and when nothing is.
  redis.call('HSET', key, 'polled_at', int(now), 'claim', int(k))
  if hash[2] == 'ready' or hash[2] == 'draining' then
    take_chores(worker, instance, k, queues, allowed_ms, reply)
    if #reply > 1 then return reply end
    if refused then return redis.error_reply(refused) end
  end
  if hash[2] ~= 'ready' or is_draining(hash[5]) then return {'not_ready'} end

  local running = redis.call('SCARD', key .. ':tasks')
  local busy = running + redis.call('SCARD', key .. ':revoked')
  if running == 1 and runs_solo(key) then return reply end
  local free = math.min(tonumber(ARGV[at + 2]), tonumber(hash[3] or '0') - busy,
    math.ceil(depth / 2))
  if free <= 0 or depth == 0 then return reply end

  local taken, from = 0, {}
  for _, queue in ipairs(queues) do look(queue) end
  if refused then return redis.error_reply(refused) end
  while taken < free do
    local queue = best_of(queues, busy + taken == 0, starve_ms)
    if not queue then break end
    need_string(body_key(queue.task.id))
    if refused then break end
    taken = taken + 1
    take(worker, instance, k, taken, queue, allowed_ms)
    from[queue] = true
    reply[#reply + 1] = handed(queue.task)
    if queue.task.solo == '1' or taken == free then break end
    look(queue)
    if refused then break end
  end
  for queue in pairs(from) do
    if not queue.empty and not owner_of(queue.name) then arm(queue.name) end
  end
  return reply
end
