-- What a stopped script began and did not commit. An entry in the log decides, since clients may
-- have read it: the end of an open task, the reset of a run that still counts as running.
-- include needs: clock, check, events, wake, task, turns, queue, worker, terminal, requeue
local GIVEN_BACK = {handed_back = true, attempt_failed = true}
local UNCOUNTED = {handed_back = true, attempt_failed = true, operator = true}

local function complete_end(task, entry)
  need_end(task)
  if refused then return false end
  entry.written = true
  conclude(task, entry.state, entry, entry.state ~= 'done')
  return true
end

local function complete_reset(task, entry)
  local queue = entry.queue ~= '' and entry.queue or shared_of(task)
  need_requeue(task, queue)
  if refused then return false end
  local fields = {'attempts', int(task.attempts + (entry.reason == 'attempt_failed' and 1 or 0)),
    'recoveries', int(task.recoveries + (UNCOUNTED[entry.reason] and 0 or 1))}
  requeue(task, queue, entry.reason, not GIVEN_BACK[entry.reason], fields)
  return true
end

local function complete(id, entry)  -- rarely
  local task = load(id)
  task.last_kind = entry.kind
  local how = entry.kind == 'end' and complete_end or complete_reset
  if not how(task, entry) then return false end
  event('repaired', id, task.worker, task.token, entry.kind .. ' without commit')
  return true
end

-- Whoever meets such a task completes it first. True when it did; the table is then out of date.
local function completed(task)
  if TERMINAL[task.state] then return false end
  local found = redis.call('XREVRANGE', out_key(task.id), '+', '-', 'COUNT', 1)
  if #found == 0 then return false end
  local id, fields = found[1][1], found[1][2]
  local entry = {}
  for i = 1, #fields, 2 do entry[fields[i]] = fields[i + 1] end
  task.last_kind = entry.kind
  local open = entry.kind == 'end'
    or entry.kind == 'reset' and task.state == 'running' and run_of(id) == task.run
  return open and complete(task.id, entry)
end

-- Text that a streaming client may have seen is never silently followed by another run's. Asked
-- after completed(), which has looked at the log.
local function said(task)
  return task.streamed == '1' and (task.n > 0 or task.last_kind == 'text')
end
