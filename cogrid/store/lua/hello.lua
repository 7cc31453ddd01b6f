-- hello: a process takes a worker's name.
-- include: clock check events wake task worker
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 instance  4 lock id (one a machine and name)  5 lease_ms
--         6 host  7 pool  8 slots  9 version  10 engine  11 claim number
--         12 address, '' where it tells none  13 number of held runs, then id, token each
-- reply   {'ok', state} | {'refused', host, ms left of its lease} | {'fenced'}
local worker, instance, lock = ARGV[2], ARGV[3], ARGV[4]
local key = worker_key(worker)
if redis.call('GET', fence_key(worker)) == instance then return {'fenced'} end
need_hash(key)
need_set(key .. ':tasks')
need_set(key .. ':revoked')
need_zset(P .. 'grid:workers')
need_zset(P .. 'grid:due')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end

local hash = redis.call('HMGET', key, 'instance', 'lock', 'host', 'state')
local same = hash[1] == instance
if hash[1] and not same and hash[2] ~= lock and leased(worker) then
  event('refused', '', worker, instance, 'name held by ' .. (hash[3] or '') .. ', asked by '
    .. ARGV[6])
  local left = tonumber(redis.call('ZSCORE', P .. 'grid:workers', worker)) - now
  return {'refused', hash[3] or '', left}
end

-- Said twice (a reply that was lost, a late copy): the name is held already, nothing else changes.
if same then
  redis.call('ZADD', P .. 'grid:workers', int(now + tonumber(ARGV[5])), worker)
  return {'ok', hash[4]}
end

-- Runs that the process names but no longer holds occupy their slots until it lets go of them; so
-- do its own tokens that were revoked while its hash was gone. A new process has none.
local revoked, kept = {}, {}
local function keep(token)
  revoked[#revoked + 1] = token
  kept[token] = true
end
for i = 14, 13 + 2 * tonumber(ARGV[13]), 2 do
  if redis.call('HGET', task_key(ARGV[i]), 'token') ~= ARGV[i + 1] then
    keep(ARGV[i + 1])
  end
end
local before = redis.call('SMEMBERS', key .. ':revoked')
for _, token in ipairs(before) do
  if instance_of(token) == instance then keep(token) end
end
local theirs = {}
for _, id in ipairs(held_by(key)) do
  local token = redis.call('HGET', task_key(id), 'token')
  if token and token ~= '' and instance_of(token) ~= instance then theirs[#theirs + 1] = id end
end

if #revoked > 0 then
  redis.call('SADD', key .. ':revoked', unpack(revoked))
  redis.call('PEXPIRE', key .. ':revoked', int(tonumber(ARGV[5]) + 3600000))
end
for _, token in ipairs(before) do
  if not kept[token] then redis.call('SREM', key .. ':revoked', token) end
end

-- What another instance held is looked at by the next pass, which takes it back.
for _, id in ipairs(theirs) do redis.call('ZADD', P .. 'grid:due', 'XX', '0', id) end

redis.call('HSET', key, 'worker_id', worker, 'instance', instance, 'lock', lock, 'host', ARGV[6],
  'pool', ARGV[7], 'slots', ARGV[8], 'version', ARGV[9], 'engine', ARGV[10], 'state', 'starting',
  'beat_at', int(now), 'claim', ARGV[11], 'hello_at', int(now), 'zombies', '0')
redis.call('HDEL', key, 'registered_at', 'polled_at', 'freed_at', 'revoked_at', 'address')
if ARGV[12] ~= '' then redis.call('HSET', key, 'address', ARGV[12]) end
redis.call('ZADD', P .. 'grid:workers', int(now + tonumber(ARGV[5])), worker)
event('hello', '', worker, instance, ARGV[6])
return {'ok', 'starting'}
