-- stamp-homes: these models have a home now; models without one for 30 days are forgotten.
-- include: clock check
-- KEYS[1] zset  grid:models
-- ARGV    1 prefix  2 keep_ms, then models
-- reply   number of models stamped
need_zset(KEYS[1])
need_right('ZREMRANGEBYSCORE', KEYS[1])
if refused then return redis.error_reply(refused) end
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], int(now), ARGV[i]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', int(now - tonumber(ARGV[2])))
return #ARGV - 2
