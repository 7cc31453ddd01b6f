-- append: text of a run reaches the log, in order and once.
-- include: clock check events wake task turns queue worker terminal
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
if refused then return redis.error_reply(refused) end

for i = last + 1, final do
  local added = redis.pcall('XADD', out_key(id), hash[3] .. '-' .. int(i), 'kind', 'text', 'data',
    ARGV[6 + i - n])
  if type(added) == 'table' and added.err then
    -- Refused only where the log already has a later entry: an end that was never committed.
    local task = load(id)
    if i == last + 1 and task and completed(task) then return {'lost'} end
    return redis.error_reply(added.err)
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
