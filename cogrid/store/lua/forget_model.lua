-- forget-model: a model is none any more that the grid knows. One that a worker still offers is known
-- again with the next pass.
-- include: clock check
-- KEYS[1] zset  grid:models
-- ARGV    1 prefix  2 model
-- reply   1 | 0 (it was not known)
need_zset(KEYS[1])
if refused then return redis.error_reply(refused) end
return redis.call('ZREM', KEYS[1], ARGV[2])
