-- submit: an accepted request becomes a pending task, once however often it is sent.
-- include: clock check events wake task turns queue worker
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 queue asked for  4 shared queue that stands in for it
--         5 body ('' when task:<id>:body:<ticket> was set beside, with a TTL)  6 size (bytes)
--         7 most tasks in that queue  8 most bytes of all queued bodies
--         9 queue_timeout_ms (0 none)  10 keep_ms  11 orphan_ms (0: no client's lease)
--         12 follower ('' none)  13 user  14 band  15 ticket ('' none)  16 'kind'  17 kind, then
--         name, value… of further hash fields
-- reply   {'new', queue, place (1 first)} | {'exists', state, queue, fingerprint}
--         | {'full', depth} | {'bytes', queued bytes} | {'no_body'} | {'not_ready'}: a chore's worker
--         | {'withdrawn'}: it came after its withdrawal
local BODY_MS = 60000
local id, queue = ARGV[2], ARGV[3]
local task = load(id)
if ARGV[11] == '0' and redis.call('EXISTS', withdrawn_key(id, ARGV[15])) == 1 then
  return {'withdrawn'}
end
if task then return {'exists', task.state, task.queue, task.fingerprint or ''} end

local owner = owner_of(queue)
if owner and not takes_own(owner) then
  if CHORES[ARGV[17]] then return {'not_ready'} end
  queue = ARGV[4]
end
need_hash(task_key(id))
need_string(body_key(id), 'SET')
need_right('PERSIST', body_key(id))
need_queue(queue)
need_zset(P .. 'grid:due')
need_zset(P .. 'grid:clients')
need_hash(P .. 'grid:totals')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end

local depth = redis.call('ZCARD', P .. queue)
if depth >= tonumber(ARGV[7]) then return {'full', depth} end
local queued = tonumber(redis.call('HGET', P .. 'grid:totals', 'queued_bytes') or '0')
if queued + tonumber(ARGV[6]) > tonumber(ARGV[8]) then return {'bytes', queued} end
local beside = body_key(id) .. ':' .. ARGV[15]
local body = ARGV[5] ~= '' and ARGV[5] or redis.call('GET', beside)
if not body then return {'no_body'} end

local limit = tonumber(ARGV[9])
task = {id = id, band = tonumber(ARGV[14]), user = ARGV[13]}
redis.call('SET', body_key(id), body, 'PX', BODY_MS)
redis.call('ZADD', P .. 'grid:due', limit > 0 and int(now + limit) or '+inf', id)
if ARGV[11] ~= '0' then
  redis.call('ZADD', P .. 'grid:clients', int(now + tonumber(ARGV[11])), id)
end
put(queue, task, false)
redis.call('PERSIST', body_key(id))

redis.call('HSET', task_key(id), 'state', 'pending', 'queue', queue, 'user', ARGV[13], 'band',
  ARGV[14], 'size', ARGV[6], 'queue_timeout_ms', ARGV[9], 'keep_ms', ARGV[10], 'client',
  ARGV[11] ~= '0' and '1' or '0', 'followers', ARGV[12], 'submitted_at', int(now), 'queued_at',
  int(now), unpack(ARGV, 16))

redis.call('HINCRBY', P .. 'grid:totals', 'queued_bytes', ARGV[6])
redis.call('HINCRBY', P .. 'grid:totals', 'submitted', 1)
if ARGV[5] == '' then redis.call('DEL', beside) end
event('submitted', id, owner, '', queue)
return {'new', queue, redis.call('ZRANK', P .. queue, id) + 1}
