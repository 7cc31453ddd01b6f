-- A task's hash as a table, and where its keys are.
local TERMINAL = {done = true, failed = true, dead = true, cancelled = true, expired = true}
local NUMBERS = {'run', 'n', 'attempts', 'recoveries', 'max_attempts', 'max_recoveries', 'band',
  'size', 'keep_ms', 'queue_timeout_ms'}
local LAST = '9223372036854775808'

-- What an operator asks of one worker: it takes no slot, stands in a set of its own, goes nowhere
-- else and fails with its worker.
local CHORES = {pull = true, remove = true, warm = true}

local function task_key(id) return P .. 'task:' .. id end
local function body_key(id) return P .. 'task:' .. id .. ':body' end
local function out_key(id) return P .. 'task:' .. id .. ':out' end

-- string: a submission of that task which is void
local function withdrawn_key(id, ticket) return task_key(id) .. ':withdrawn:' .. ticket end

-- The numbers that scripts reckon with, as such.
local function counted(task)
  for i = 1, #NUMBERS do
    local number = task[NUMBERS[i]]
    task[NUMBERS[i]] = number and tonumber(number) or 0
  end
  return task
end

-- set: where a running task stands
local function held_key(task)
  return P .. 'worker:' .. task.worker .. (CHORES[task.kind] and ':chores' or ':tasks')
end

-- nil where there is none.
local function load(id)
  local flat = redis.call('HGETALL', task_key(id))
  if #flat == 0 then return nil end
  local task = {id = id}
  for i = 1, #flat, 2 do task[flat[i]] = flat[i + 1] end
  return counted(task)
end

-- The same with some of its fields, the first of which every task has: half the price, for what
-- happens to every task.
local function glance(id, fields)
  local values = redis.call('HMGET', task_key(id), unpack(fields))
  if not values[1] then return nil end
  local task = {id = id}
  for i = 1, #fields do task[fields[i]] = values[i] or nil end
  return counted(task)
end

local function instance_of(token)
  return string.match(token or '', '^[^:]*') or ''
end

local function number_of(token)
  return tonumber(string.match(token or '', '^[^:]*:(%d+):') or '0')
end

local function run_of(entry) return tonumber(string.match(entry, '^%d+')) end

local function failed(reply) return type(reply) == 'table' and reply.err end

-- One entry that is no text. An id below the log's last one is refused: a claim was stopped before
-- its commit and left its run there; the entry then belongs to that run, a new run comes after it.
local function emit(task, n, ...)
  local added = redis.pcall('XADD', out_key(task.id), int(task.run) .. '-' .. n, ...)
  if not failed(added) then return end
  local last = redis.call('XREVRANGE', out_key(task.id), '+', '-', 'COUNT', 1)
  local run = last[1] and run_of(last[1][1]) or 0
  task.run = math.max(task.run, n == '0' and run + 1 or run)
  redis.call('XADD', out_key(task.id), int(task.run) .. '-' .. n, ...)
end

-- One text entry of a run; nil, or the error. It may be there already: an append that was stopped.
local function say(id, run, n, data)
  local entry = run .. '-' .. n
  local added = redis.pcall('XADD', out_key(id), entry, 'kind', 'text', 'data', data)
  if not failed(added) then return nil end
  local there = redis.call('XRANGE', out_key(id), entry, entry)
  return not (there[1] and there[1][2][2] == 'text') and added.err or nil
end

-- What a stopped submit has left of a task that has no hash.
local function drop_traces(id)
  redis.call('ZREM', P .. 'grid:due', id)
  redis.call('ZREM', P .. 'grid:clients', id)
  redis.call('DEL', body_key(id))
end
