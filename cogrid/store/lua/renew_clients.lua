-- renew-clients: a coordinator still listens to these tasks; moves their clients' leases on and
-- answers what it may have missed.
-- include: clock check task
-- KEYS[1] zset  grid:clients
-- ARGV    1 prefix  2 orphan_ms, then ids
-- reply   {state or '' (absent), last id of its log or ''} each, in the order asked
need_zset(KEYS[1])
if refused then return redis.error_reply(refused) end
local reply = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  local hash = redis.call('HMGET', task_key(id), 'state', 'client')
  if hash[1] and hash[2] == '1' and not TERMINAL[hash[1]] then
    redis.call('ZADD', KEYS[1], int(now + tonumber(ARGV[2])), id)
  end
  local last = redis.call('XREVRANGE', out_key(id), '+', '-', 'COUNT', 1)
  reply[#reply + 1] = {hash[1] or '', last[1] and last[1][1] or ''}
end
return reply
