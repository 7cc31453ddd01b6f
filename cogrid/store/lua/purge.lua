-- purge: ended tasks are dropped before their time. One that ended a moment ago stays: whoever
-- follows it may not have read its end yet.
-- include: clock check events wake task
-- KEYS[1] zset  grid:finished or grid:dead
-- ARGV    1 prefix  2 least_ms since its end, then ids
-- reply   ids that were dropped
local least_ms = tonumber(ARGV[2])
local over = {}
need_zset(KEYS[1])
for i = 3, #ARGV do
  local id = ARGV[i]
  local task = redis.call('HMGET', task_key(id), 'state', 'finished_at')
  local ended = task[1] and TERMINAL[task[1]] and now - tonumber(task[2] or '0') >= least_ms
  if ended and redis.call('ZSCORE', KEYS[1], id) then
    need_hash(task_key(id))
    need_string(body_key(id), 'DEL')
    need_stream(out_key(id))
    over[#over + 1] = id
  end
end
if refused then return redis.error_reply(refused) end
for _, id in ipairs(over) do
  redis.call('DEL', task_key(id), body_key(id), out_key(id))
  redis.call('ZREM', KEYS[1], id)
end
return over
