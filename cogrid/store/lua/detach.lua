-- detach: one connection has closed. The last one to leave cancels, unless the task says otherwise.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 follower
-- reply   {'ok', state} | {'cancelled', state it was in} | {'unknown'}
local id = ARGV[2]
local task = load(id)
if not task then return {'unknown'} end
local rest, was = {}, false
for name in string.gmatch(task.followers or '', '[^ ]+') do
  if name == ARGV[3] then was = true else rest[#rest + 1] = name end
end
if not was then return {'ok', task.state} end
need_hash(KEYS[1])
if #rest == 0 and task.on_close == 'cancel' then
  if completed(task) then task = load(id) end
  if not TERMINAL[task.state] then need_end(task) end
end
if refused then return redis.error_reply(refused) end
task.followers = table.concat(rest, ' ')
redis.call('HSET', KEYS[1], 'followers', task.followers)
if #rest > 0 or task.on_close ~= 'cancel' or TERMINAL[task.state] then return {'ok', task.state} end
conclude(task, 'cancelled', {code = 'cancelled', message = 'the client left'}, true)
return {'cancelled', task.state}
