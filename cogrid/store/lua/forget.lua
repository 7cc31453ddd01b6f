-- forget: a worker that is dead, or a ghost by force, is struck off: its name, its lease and its
-- instance are void. Its tasks must have been moved and reaped before; what remains is refused.
-- include: clock check events wake task turns queue worker
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 force (1|0)  4 by whom
-- reply   {'ok'} | {'alive', ms left of its lease} | {'unknown'} | {'holds', running, waiting}
local worker = ARGV[2]
local key = worker_key(worker)
local pool = redis.call('HGET', key, 'pool')
local lease = redis.call('ZSCORE', P .. 'grid:workers', worker)
if not pool and not lease then return {'unknown'} end
if leased(worker) and ARGV[3] ~= '1' then return {'alive', tonumber(lease) - now} end
need_hash(key)
need_set(key .. ':tasks')
need_set(key .. ':revoked')
need_zset(P .. 'grid:workers')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end
local running = redis.call('SCARD', key .. ':tasks')
local waiting = pool and redis.call('ZCARD', P .. 'tasks:' .. pool .. ':' .. worker) or 0
if ARGV[3] ~= '1' and running + waiting > 0 then return {'holds', running, waiting} end
-- The lease goes to 0 first, so that what it still runs is reaped as a dead worker's.
redis.call('ZADD', P .. 'grid:workers', '0', worker)
redis.call('DEL', key, key .. ':revoked')
if running + waiting == 0 then redis.call('ZREM', P .. 'grid:workers', worker) end
event('forgotten', '', worker, '', ARGV[4])
return {'ok'}
