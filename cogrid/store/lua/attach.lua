-- attach: one more connection listens to a task.
-- include: clock check task
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 follower (<coordinator>:<n>)  4 orphan_ms
-- reply   {'ok', state} | {'unknown'}
local task = load(ARGV[2])
if not task then return {'unknown'} end
need_hash(KEYS[1])
need_zset(P .. 'grid:clients')
if refused then return redis.error_reply(refused) end
-- A task submitted without a client's lease gets none by being watched.
if task.client == '1' and not TERMINAL[task.state] then
  redis.call('ZADD', P .. 'grid:clients', int(now + tonumber(ARGV[4])), ARGV[2])
end
local followers = task.followers or ''
if not string.find(' ' .. followers .. ' ', ' ' .. ARGV[3] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'followers',
    followers == '' and ARGV[3] or followers .. ' ' .. ARGV[3])
end
return {'ok', task.state}
