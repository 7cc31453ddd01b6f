-- forget: a worker that is dead, or a ghost by force, is struck off: its name, its lease and its
-- instance are void. What it holds is then a dead worker's; without force, nothing may remain.
-- include: clock check events wake task turns queue worker
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 force (1|0)  4 by whom  5 silent_ms: by force only one that has not
--         claimed for so long (0: any)
-- reply   {'ok'} | {'alive', ms left of its lease} | {'unknown'} | {'holds', running, waiting}
--         | {'works', ms since its last claim}
local FENCED_MS = 7 * 86400000
local worker = ARGV[2]
local key = worker_key(worker)
local hash = redis.call('HMGET', key, 'pool', 'instance', 'polled_at')
local pool = hash[1]
local lease = redis.call('ZSCORE', P .. 'grid:workers', worker)
-- A hash of another software, or of a version long gone, may have no pool.
if not lease and redis.call('EXISTS', key) == 0 then return {'unknown'} end
if leased(worker) then
  if ARGV[3] ~= '1' then return {'alive', tonumber(lease) - now} end
  local silent = now - tonumber(hash[3] or '0')
  if silent < tonumber(ARGV[5]) then return {'works', silent} end
end
need_hash(key)
need_set(key .. ':tasks')
need_set(key .. ':revoked')
need_string(fence_key(worker), 'SET')
need_zset(P .. 'grid:workers')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end
local running = redis.call('SCARD', key .. ':tasks') + redis.call('SCARD', key .. ':chores')
local waiting = pool and redis.call('ZCARD', P .. 'tasks:' .. pool .. ':' .. worker) or 0
if ARGV[3] ~= '1' and running + waiting > 0 then return {'holds', running, waiting} end
-- A ghost that still renews would say hello and be back.
if hash[2] then redis.call('SET', fence_key(worker), hash[2], 'PX', FENCED_MS) end
-- The lease goes to 0 first, so that what it still runs is reaped as a dead worker's.
redis.call('ZADD', P .. 'grid:workers', '0', worker)
redis.call('DEL', key, key .. ':revoked')
if running + waiting == 0 then redis.call('ZREM', P .. 'grid:workers', worker) end
event('forgotten', '', worker, '', ARGV[4])
return {'ok'}
