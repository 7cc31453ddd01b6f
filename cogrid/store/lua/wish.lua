-- wish: the operator asks a worker to drain or to run again.
-- include: clock check events wake worker
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 wanted (JSON: state, until_ms, by)  4 by whom and what
-- reply   {'ok'} | {'unknown'}
if redis.call('EXISTS', KEYS[1]) == 0 then return {'unknown'} end
need_hash(KEYS[1])
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end
redis.call('HSET', KEYS[1], 'wanted', ARGV[3])
inbox(ARGV[2], 'wish')
event('wish', '', ARGV[2], '', ARGV[4])
return {'ok'}
