-- revive: a dead letter becomes a pending task again, under its id and with its body, as if it were
-- submitted without a client. Its old log goes: an end in it would end the task anew.
-- include: clock check events wake task turns queue worker terminal requeue
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 queue that it should go to  4 most tasks in that queue
--         5 most bytes of all queued bodies  6 by whom
-- reply   {'ok', queue} | {'moved_on', state} | {'unknown'} | {'no_body'} | {'full', depth}
--         | {'bytes', queued bytes}
local id = ARGV[2]
local task = load(id)
if not task then return {'unknown'} end
if task.state ~= 'dead' then return {'moved_on', task.state} end
if redis.call('EXISTS', body_key(id)) == 0 then return {'no_body'} end
local queue = fit_queue(ARGV[3], task)
need_end(task)
need_queue(queue)
need_right('PERSIST', body_key(id))
if refused then return redis.error_reply(refused) end

local depth = redis.call('ZCARD', P .. queue)
if depth >= tonumber(ARGV[4]) then return {'full', depth} end
local queued = tonumber(redis.call('HGET', P .. 'grid:totals', 'queued_bytes') or '0')
if queued + task.size > tonumber(ARGV[5]) then return {'bytes', queued} end

redis.call('ZADD', P .. 'grid:due', queue_limit(task), id)
put(queue, task, false)

redis.call('HSET', KEYS[1], 'state', 'pending', 'queue', queue, 'queued_at', int(now), 'token', '',
  'last_token', '', 'n', '0', 'attempts', '0', 'recoveries', '0', 'solo', '0', 'avoid', '',
  'reason', 'operator', 'error', '', 'code', '', 'client', '0', 'on_close', 'keep', 'followers', '')

redis.call('PERSIST', KEYS[1])
redis.call('PERSIST', body_key(id))
redis.call('HDEL', KEYS[1], 'finished_at', 'claimed_at', 'first_at')
redis.call('HINCRBY', P .. 'grid:totals', 'queued_bytes', int(task.size))
redis.call('ZREM', P .. 'grid:dead', id)
-- Last: as long as the old end stands in the log, whoever meets the task makes it a dead letter
-- again, which is what is right for one whose revival was broken off.
redis.call('DEL', out_key(id))
event('revived', id, '', '', 'by ' .. ARGV[6])
return {'ok', queue}
