-- begin-pass: a reaper starts a round. Where the clock, the server or the last pass is not what it
-- should be, everybody holds back for one lease.
-- include: clock check events
-- KEYS[1] hash  grid:reaper
-- ARGV    1 prefix  2 run_id  3 replication id  4 window_ms  5 lease_ms  6 schema version
-- reply   {'ok'|'held', now (ms), hold_until (ms), last pass before this one (ms)}
--         | {'newer', schema version}
need_hash(KEYS[1])
need_stream(P .. 'grid:events')
if refused then return redis.error_reply(refused) end
local mark = redis.call('HMGET', KEYS[1], 'run_id', 'replication_id', 'last_pass', 'hold_until',
  'schema', 'hold_from')
local schema = tonumber(mark[5] or '0')
if schema > tonumber(ARGV[6]) then return {'newer', schema} end
local last, hold = tonumber(mark[3] or '0'), tonumber(mark[4] or '0')
local since = now - last
-- A hold that began under a clock that has since gone back would never end.
if hold > now + tonumber(ARGV[5]) then hold = 0 end
if since < 0 or since > tonumber(ARGV[4]) or mark[1] ~= ARGV[2] or mark[2] ~= ARGV[3] then
  local running = hold > now
  hold = now + tonumber(ARGV[5])
  local from = running and tonumber(mark[6] or '0') or math.min(last > 0 and last or now, now)
  redis.call('HSET', KEYS[1], 'hold_from', int(from), 'hold_until', int(hold))
  event('hold', '', '', '', 'last pass ' .. int(since) .. ' ms ago')
end
redis.call('HSET', KEYS[1], 'run_id', ARGV[2], 'replication_id', ARGV[3], 'last_pass', int(now),
  'schema', ARGV[6])
return {hold > now and 'held' or 'ok', int(now), int(hold), int(last)}
