-- The reaper's doubt of itself (design, section 6): nothing is ended or taken back because of a
-- deadline before hold_until, nor unless a pass began under this server's run id in the last
-- window. run_id is the server's, as the pass read it.
local function holding(run_id, window_ms)
  local mark = redis.call('HMGET', P .. 'grid:reaper', 'run_id', 'last_pass', 'hold_until')
  local since = now - tonumber(mark[2] or '0')
  return mark[1] ~= run_id or since < 0 or since > window_ms or now < tonumber(mark[3] or '0')
end
