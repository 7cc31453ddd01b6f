-- The event log: every transition, with Redis time. Capped; whole nodes are cut (~).
local EVENTS = 100000

local function event(edge, task, worker, token, reason)
  redis.call('XADD', P .. 'grid:events', 'MAXLEN', '~', EVENTS, '*', 'edge', edge,
    'task', task or '', 'worker', worker or '', 'token', token or '', 'reason', reason or '',
    'at_ms', int(now))
end
