-- append: text of a run reaches the log, in order and once.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 token  4 n of the first piece  5 allowed_ms, then data (JSON) each
-- reply   {'ok', last n} | {'gap', last n: send again from there} | {'lost'}
local id, token, n = ARGV[2], ARGV[3], tonumber(ARGV[4])
local hash = redis.call('HMGET', KEYS[1], 'token', 'n', 'run', 'followers', 'state', 'first_at')
if hash[1] ~= token or hash[5] ~= 'running' then return {'lost'} end
local last = tonumber(hash[2])
if n > last + 1 then return {'gap', last} end
local final = n + #ARGV - 6
if final <= last then return {'ok', last} end
need_stream(out_key(id))
need_zset(P .. 'grid:due')
need_hash(KEYS[1])
if refused then return redis.error_reply(refused) end

for i = last + 1, final do
  local err = say(id, hash[3], int(i), ARGV[6 + i - n])
  if err then
    -- Only where the log has a later entry: an end or a reset that was never committed.
    if completed(load(id)) then return {'lost'} end
    return redis.error_reply(refused or err)
  end
end
redis.call('ZADD', P .. 'grid:due', int(now + tonumber(ARGV[5])), id)
if hash[6] then
  redis.call('HSET', KEYS[1], 'n', int(final))
else
  redis.call('HSET', KEYS[1], 'n', int(final), 'first_at', int(now))
end
tell(hash[4], id)
return {'ok', final}
