-- A task's hash as a table, and where its keys are.
local TERMINAL = {done = true, failed = true, dead = true, cancelled = true, expired = true}
local LAST = '9223372036854775808'

local function task_key(id) return P .. 'task:' .. id end
local function body_key(id) return P .. 'task:' .. id .. ':body' end
local function out_key(id) return P .. 'task:' .. id .. ':out' end

-- nil where there is none. id and the numbers that scripts reckon with are filled in.
local function load(id)
  local flat = redis.call('HGETALL', task_key(id))
  if #flat == 0 then return nil end
  local task = {id = id}
  for i = 1, #flat, 2 do task[flat[i]] = flat[i + 1] end
  for _, name in ipairs({'run', 'n', 'attempts', 'recoveries', 'max_attempts', 'max_recoveries',
      'band', 'size', 'keep_ms', 'queue_timeout_ms'}) do
    task[name] = tonumber(task[name] or '0') or 0
  end
  return task
end

local function instance_of(token)
  return string.match(token or '', '^[^:]*') or ''
end

local function number_of(token)
  return tonumber(string.match(token or '', '^[^:]*:(%d+):') or '0')
end

-- Text that a streaming client has seen is never silently followed by another run's.
local function said(task)
  return task.streamed == '1' and task.n > 0
end

local function emit(task, id, ...)
  redis.call('XADD', out_key(task.id), id, ...)
end
