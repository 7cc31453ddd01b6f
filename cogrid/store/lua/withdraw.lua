-- withdraw: a submission that was never acknowledged is void, whether it has arrived or is still to
-- come: nothing else would end a task without a client's lease. Another's under the same id stays.
-- include: clock check events wake task turns queue worker terminal requeue complete
-- KEYS[1] hash  task:<id>
-- ARGV    1 prefix  2 id  3 ticket of the submission  4 message (who and why)
-- reply   {'ok', state it was in} | {'over', state} | {'unknown'}
local WITHDRAWN_MS = 3600000
local id, ticket = ARGV[2], ARGV[3]
need_string(withdrawn_key(id, ticket), 'SET')
local task = load(id)
local ours = task and task.ticket == ticket
if ours and completed(task) then task = load(id) end
local open = ours and not TERMINAL[task.state]
if open then need_end(task) end
if refused then return redis.error_reply(refused) end

redis.call('SET', withdrawn_key(id, ticket), '1', 'PX', WITHDRAWN_MS)
if not ours then return {'unknown'} end
if not open then return {'over', task.state} end
conclude(task, 'cancelled', {code = 'cancelled', message = ARGV[4]}, true)
return {'ok', task.state}
