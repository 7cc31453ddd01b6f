-- note: what an operator does is told to the event log.
-- include: clock check events
-- KEYS[1] stream  grid:events
-- ARGV    1 prefix  2 task or ''  3 worker or ''  4 what, and by whom
-- reply   {'ok'}
need_stream(KEYS[1])
if refused then return redis.error_reply(refused) end
event('operator', ARGV[2], ARGV[3], '', ARGV[4])
return {'ok'}
