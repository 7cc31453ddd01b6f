-- tend: what a pass looks after in the indexes: markers of queues that have something, entries
-- that no hash confirms, ended tasks past their retention, the bytes of queued bodies (once a
-- minute).
-- include: clock check events wake task turns queue worker terminal
-- KEYS[1] zset  grid:queues
-- ARGV    1 prefix  2 most at once  3 number of queues, then queues to arm, then ids in grid:due
--         whose hash is gone or over
-- reply   {armed, dropped, purged}
local COUNT_MS, COUNT_MOST = 60000, 2000
local most, count = tonumber(ARGV[2]), tonumber(ARGV[3])
need_zset(KEYS[1])
need_zset(P .. 'grid:due')
need_zset(P .. 'grid:finished')
need_zset(P .. 'grid:dead')
need_zset(P .. 'grid:clients')
need_hash(P .. 'grid:totals')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end

-- Bytes that a stopped script has counted and never taken off, or whose hash somebody has deleted,
-- are counted anew; nil: not now. With more tasks open it would take too long, and waits.
local function open_bytes()
  local open = redis.call('ZCARD', P .. 'grid:due')
  local last = tonumber(redis.call('HGET', P .. 'grid:totals', 'counted_at') or '0')
  if open > COUNT_MOST or open > 0 and math.abs(now - last) < COUNT_MS then return nil end
  local bytes = 0
  for _, id in ipairs(redis.call('ZRANGE', P .. 'grid:due', 0, -1)) do
    local task = redis.pcall('HMGET', task_key(id), 'state', 'size')
    if failed(task) then return nil end
    if task[1] and not TERMINAL[task[1]] then bytes = bytes + tonumber(task[2] or '0') end
  end
  return bytes
end
local bytes = open_bytes()

local armed = 0
for i = 4, 3 + count do
  if not tidy_queue(ARGV[i]) and not owner_of(ARGV[i]) then
    arm(ARGV[i])
    armed = armed + 1
  end
end

local dropped = 0
for i = 4 + count, #ARGV do
  local id = ARGV[i]
  local task = redis.call('HMGET', task_key(id), 'state', 'keep_ms')
  if not task[1] or TERMINAL[task[1]] then
    if redis.call('ZSCORE', P .. 'grid:due', id) then
      dropped = dropped + 1
      event('repaired', id, '', '', 'due without a task')
    end
    if task[1] then
      retire(id, task[1], keep_ms_of(task[1], tonumber(task[2])))
    else
      drop_traces(id)
    end
  end
end

if bytes then
  redis.call('HSET', P .. 'grid:totals', 'queued_bytes', int(bytes), 'counted_at', int(now))
end

-- An ended task's keys end by themselves, but for one whose script was stopped after its commit.
local function purge(id)
  local state = redis.call('HGET', task_key(id), 'state')
  if state and not TERMINAL[state] then return end
  redis.call('DEL', task_key(id), body_key(id), out_key(id))
  redis.call('ZREM', P .. 'grid:due', id)
  redis.call('ZREM', P .. 'grid:clients', id)
end

local purged = 0
for _, index in ipairs({'grid:finished', 'grid:dead'}) do
  local over = redis.call('ZRANGE', P .. index, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, most)
  for _, id in ipairs(over) do
    purge(id)
    redis.call('ZREM', P .. index, id)
    purged = purged + 1
  end
end
return {armed, dropped, purged}
