-- claim: a worker asks for work. Every call of a ready instance with a lease stamps polled_at.
-- include: clock check events wake task turns queue worker terminal requeue complete claim
-- KEYS[1] hash  worker:<id>
-- ARGV    1 prefix  2 worker  3 instance  4 k (counted by the worker, repeated until answered)
--         5 free slots (the worker's view)  6 allowed_ms (silence until progress is overdue)
--         7 starve_ms  8 number of queues, then queue, loaded (1|0) each
-- reply   {'ok', {id, token, run, kind, model, streamed, attempts, recoveries, body}…}
--         | {'unknown'} | {'superseded'} | {'renew'} | {'not_ready'}
return claim(ARGV[2], 3)
