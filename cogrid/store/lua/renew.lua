-- renew: a worker lives, runs these tasks, and has made this progress with them.
-- include: clock check events wake task worker
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 instance  4 lock id  5 lease_ms (0: let the lease run out)
--         6 state  7 offers (JSON)  8 supports (JSON)  9 age of the claim loop's last turn (ms)
--         10 settled claim number  11 slots  12 report (JSON: memory, disk, … for status)
--         13 number of models that are fine, then their names, then
--         id, token, silent_ms, allowed_ms of each run
-- reply   {'ok', wanted, registered (1: this renew made it ready for the first time),
--          {ids that are lost…}, {id, token, … held without being named}}
--         | {'unknown'} | {'again'} | {'superseded', host}
local worker, instance, state = ARGV[2], ARGV[3], ARGV[6]
local key = KEYS[1]
local hash = redis.call('HMGET', key, 'instance', 'lock', 'host', 'state', 'registered_at', 'wanted')
if not hash[1] then return {'unknown'} end
if hash[1] ~= instance then
  if hash[2] == ARGV[4] then return {'again'} end
  return {'superseded', hash[3] or ''}
end
need_hash(key)
need_set(key .. ':tasks')
need_set(key .. ':chores')
need_set(key .. ':revoked')
need_zset(P .. 'grid:workers')
need_zset(P .. 'grid:due')
need_zset(P .. 'grid:models')
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end

local models = tonumber(ARGV[13])
local first, named, lost, due = 14 + models, {}, {}, {}
for i = first, #ARGV, 4 do
  local id, token = ARGV[i], ARGV[i + 1]
  named[token] = true
  local task = redis.call('HMGET', task_key(id), 'token', 'state')
  if task[1] == token and task[2] == 'running' then
    due[id] = int(now - tonumber(ARGV[i + 2]) + tonumber(ARGV[i + 3]))
  else
    lost[#lost + 1] = id
  end
end

local settled, held, strange = tonumber(ARGV[10]), {}, {}
for _, id in ipairs(held_by(key)) do
  local task = redis.call('HMGET', task_key(id), 'token', 'state', 'worker')
  if task[2] ~= 'running' or task[3] ~= worker then
    strange[#strange + 1] = id
  elseif instance_of(task[1]) == instance and number_of(task[1]) <= settled
      and not named[task[1]] then
    held[#held + 1] = id
    held[#held + 1] = task[1]
  end
end

for id, at in pairs(due) do redis.call('ZADD', P .. 'grid:due', at, id) end
for _, id in ipairs(strange) do
  redis.call('SREM', key .. ':tasks', id)
  redis.call('SREM', key .. ':chores', id)
  event('repaired', id, worker, '', 'not run here')
end

-- Silence confirms: what is settled and not named has been let go of.
local freed = false
for _, token in ipairs(redis.call('SMEMBERS', key .. ':revoked')) do
  if instance_of(token) ~= instance or (number_of(token) <= settled and not named[token]) then
    redis.call('SREM', key .. ':revoked', token)
    freed = true
  end
end

local registered = state == 'ready' and not hash[5]
local lease_ms = tonumber(ARGV[5])
redis.call('HSET', key, 'state', state, 'models', ARGV[7], 'supports', ARGV[8], 'beat_at', int(now),
  'claim_age_ms', ARGV[9], 'slots', ARGV[11], 'report', ARGV[12])
if registered then redis.call('HSET', key, 'registered_at', iso()) end
if freed or (state == 'ready' and hash[4] ~= 'ready') then
  redis.call('HSET', key, 'freed_at', int(now))
end
if state == 'ready' and hash[4] ~= 'ready' then
  for i = 14, 13 + models do redis.call('ZADD', P .. 'grid:models', int(now), ARGV[i]) end
end
if lease_ms > 0 then
  redis.call('ZADD', P .. 'grid:workers', int(now + lease_ms), worker)
  redis.call('PEXPIRE', key .. ':revoked', int(lease_ms + 3600000))
end
if registered then event('registered', '', worker, instance, ARGV[7]) end
return {'ok', hash[6] or '', registered and 1 or 0, lost, held}
