"""Tests of the tests: mistakes put into the scripts, each of which a table or a story catches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cogrid.model.task import OnClose
from cogrid.store.passes import Acted
from cogrid.store.refusal import StoreError
from cogrid.store.workers import Renewed
from tests.build import NOW_MS
from tests.store import seed
from tests.store import test_chores as chores
from tests.store import test_stories as stories
from tests.store import test_transitions_claim as claims
from tests.store import test_transitions_clients as clients
from tests.store import test_transitions_finish as finishes
from tests.store import test_transitions_passes as passes
from tests.store import test_transitions_submit as submits
from tests.store import test_transitions_workers as workers
from tests.store.conftest import a_fake
from tests.store.variants import clocked, mutant
from tests.store.world import REPLICATION_ID, RUN_ID, World

CAUGHT = (AssertionError, LookupError, StoreError)
Change = tuple[str, str, str]
"""Script, what its text says, what it says instead."""

TABLES: dict[str, tuple[Callable[[World], Any], tuple[Change, ...]]] = {
    "a chore waits for a free slot": (
        partial(chores.test_it_goes_first_and_takes_no_slot, fields={}),
        (("claim", "    take_chores(worker, instance, k, queues, allowed_ms, reply)\n", "\n"),),
    ),
    "a chore takes a slot": (
        chores.test_a_slot_stays_free_beside_it,
        (("claim", "(CHORES[task.kind] and ':chores' or ':tasks')", "':tasks'"),),
    ),
    "a task is taken as a chore": (
        partial(chores.test_it_goes_first_and_takes_no_slot, fields={}),
        (("claim", "and look(queue) and CHORES[queue.task.kind] do", "and look(queue) do"),),
    ),
    "one that drains does no chores": (
        partial(chores.test_it_goes_first_and_takes_no_slot, fields={"state": "draining"}),
        (("claim", "if hash[2] == 'ready' or hash[2] == 'draining' then\n    take_chores",
          "if hash[2] == 'ready' then\n    take_chores"),),
    ),
    "one that is away does chores": (
        partial(chores.test_who_is_not_there_takes_none, state="away"),
        (("claim", "if hash[2] == 'ready' or hash[2] == 'draining' then\n    take_chores",
          "if true then\n    take_chores"),),
    ),
    "a cancelled chore keeps a slot taken": (
        chores.test_cancelled_it_leaves_no_token,
        (("cancel", "  if CHORES[task.kind] then return inbox(task.worker, task.id) end\n", "\n"),),
    ),
    "a chore that failed is tried again": (
        chores.test_one_that_is_not_named_is_handed_back_and_fails,
        (("finish", "if CHORES[task.kind] or said(task) then", "if said(task) then"),),
    ),
    "a dead worker's chore goes to another": (
        chores.test_it_fails_with_its_worker,
        (("reap", "if CHORES[task.kind] then\n  local code =",
          "if false then\n  local code ="),),
    ),
    "a ghost's chore moves": (
        partial(
            chores.test_it_never_moves, changed=seed.worker(polled_at=NOW_MS - 20_000),
            said=Acted("failed", "ghost_pending"),
        ),
        (("move", "if CHORES[task.kind] then return fail_chore() end", ""),),
    ),
    "a chore fails for want of a home": (
        chores.test_it_waits_for_no_home_and_goes_nowhere,
        (("fail_homeless", "not task or CHORES[task.kind] or", "not task or"),),
    ),
    "a chore is asked of one that cannot": (
        partial(chores.test_only_a_ready_worker_is_asked, seeded=seed.worker(state="starting")),
        (("submit", "  if CHORES[ARGV[17]] then return {'not_ready'} end\n", "\n"),),
    ),
    "a submission is accepted twice": (
        submits.test_a_submission_sent_twice_is_one,
        (("submit", "if task then return {'exists'", "if false then return {'exists'"),),
    ),
    "a submission arms no marker": (
        submits.test_a_submission_stands_everywhere_it_must,
        (("submit", "if owner then inbox(owner, task.id) else arm(queue) end", ""),),
    ),
    "a dead worker's own queue takes tasks": (
        submits.test_the_shared_queue_stands_in_for_a_worker_that_cannot,
        (("submit", "and leased(id)", ""),),
    ),
    "one user's backlog comes first": (
        submits.test_users_take_turns,
        (("submit", "'f:' .. band .. ':' .. user", "'f:' .. band"),),
    ),
    "a body set beside ends after a minute": (
        submits.test_a_body_set_beside_is_taken_over,
        (("submit", "redis.call('PERSIST', body_key(id))\n", ""),),
    ),
    "a body set beside is anybody's": (
        submits.test_a_body_set_beside_by_another_is_not_taken_for_ones_own,
        (("submit", "local beside = body_key(id) .. ':' .. ARGV[15]",
          "local beside = body_key(id) .. ':theirs'"),),
    ),
    "what was withdrawn runs all the same": (
        submits.test_a_submission_that_comes_after_its_withdrawal_is_void,
        (("submit", "return {'withdrawn'}", ""),),
    ),
    "a withdrawal takes another's task along": (
        submits.test_anothers_submission_under_the_same_id_is_left_alone,
        (("withdraw", "task and task.ticket == ticket", "task"),),
    ),
    "a cancel keeps the token": (
        submits.test_a_running_task_is_cancelled_and_its_slot_stays_taken,
        (("cancel", "int(now), 'token', '',\n", "int(now),\n"),),
    ),
    "a cancel frees the slot at once": (
        submits.test_a_running_task_is_cancelled_and_its_slot_stays_taken,
        (("cancel", "if running and taken then revoke(task) end", ""),),
    ),
    "a turn that was not served is lost": (
        submits.test_a_pending_task_is_cancelled_and_its_turn_comes_back,
        (("cancel", "forget_turn(queue, task.band, task.user, 1)", ""),),
    ),
    "an orphan is cancelled while its client's lease runs": (
        submits.test_an_orphan_is_cancelled_once_its_clients_lease_has_run_out,
        (("cancel", "if not lease or tonumber(lease) > now then return {'moved_on'} end", ""),),
    ),
    "what is over is cancelled": (
        submits.test_what_is_over_stays_over,
        (("cancel", "if TERMINAL[task.state] then\n  redis", "if false then\n  redis"),),
    ),
    "each user of a flood has fields of its own": (
        finishes.test_a_flood_of_users_does_not_fill_the_day,
        (("finish", "'HLEN', key) >= USAGE_MOST", "'HLEN', key) >= 1e9"),),
    ),
    "a claim in two steps": (
        claims.test_a_claim_takes_the_head_at_once_with_its_token,
        (("claim", "redis.call('HSET', task_key(task.id), 'state', 'running', 'token', task.token,",
          "redis.call('HSET', task_key(task.id), 'token', task.token,"),),
    ),
    "a claim keeps the queue's entry": (
        claims.test_a_claim_takes_the_head_at_once_with_its_token,
        (("claim", "redis.call('ZREM', P .. queue.name, task.id)", ""),),
    ),
    "a claim does not check its instance": (
        partial(claims.test_who_may_not_claim, seeded=seed.worker(instance="esxi2"),
                status="superseded", polls=False),
        (("claim", "if hash[1] ~= instance then return {'superseded'} end", ""),),
    ),
    "a claim does not check the lease": (
        partial(claims.test_who_may_not_claim, seeded=seed.worker(lease_ms=-1), status="renew",
                polls=False),
        (("claim", "if not leased(worker) then return {'renew'} end", ""),),
    ),
    "a claim does not check the state": (
        partial(claims.test_who_may_not_claim, seeded=seed.worker(state="starting"),
                status="not_ready", polls=True),
        (("claim", "if hash[2] ~= 'ready' or is_draining(hash[5]) then return {'not_ready'} end",
          ""),),
    ),
    "a claim believes its worker about free slots": (
        claims.test_a_claim_takes_half_of_what_waits_and_no_more_than_is_free,
        (("claim", "tonumber(hash[3] or '0') - busy,\n", "99,\n"),),
    ),
    "revoked tokens take no slots": (
        claims.test_a_revoked_token_takes_a_slot,
        (("claim", "running + redis.call('SCARD', key .. ':revoked')", "running"),),
    ),
    "a claim takes everything": (
        claims.test_half_of_three_is_two,
        (("claim", "math.ceil(depth / 2))", "depth)"),),
    ),
    "a claim sent again takes more": (
        claims.test_a_claim_sent_again_gives_the_same_and_nothing_new,
        (("claim", "if k <= last then", "if false then"),),
    ),
    "a claim that took nothing is forgotten": (
        claims.test_a_number_is_remembered_even_if_it_took_nothing,
        (("claim", "'polled_at', int(now), 'claim', int(k))", "'polled_at', int(now))"),),
    ),
    "an empty queue keeps its turns": (
        claims.test_the_last_claim_of_a_queue_leaves_nothing_of_it,
        (("claim", "redis.call('DEL', P .. 'wake:' .. queue, turns_key(queue))",
          "redis.call('DEL', P .. 'wake:' .. queue)"),),
    ),
    "an entry without a hash is run": (
        partial(claims.test_an_entry_that_the_hash_denies_is_dropped, told={"queue": claims.OTHER}),
        (("claim", "and task.queue == queue and not", "and not"),),
    ),
    "what was served last comes next": (
        claims.test_of_equals_the_one_served_longest_ago_is_next,
        (("claim", "return a.active < b.active", "return a.active > b.active"),),
    ),
    "queues are compared without their bands": (
        claims.test_bands_come_before_everything,
        (("claim", "if a.band ~= b.band then return a.band < b.band end", ""),),
    ),
    "runs are counted": (
        claims.test_a_claim_takes_the_head_at_once_with_its_token,
        (("claim", "task.run = math.max(task.run + 1, now)", "task.run = task.run + 1"),),
    ),
    "a claim that was stopped holds up the next": (
        claims.test_a_claim_that_was_stopped_does_not_hold_up_the_next,
        (("claim", "if not failed(added) then return end", "do return end"),),
    ),
    "a solo task runs beside others": (
        claims.test_a_solo_task_waits_until_its_worker_runs_nothing,
        (("claim", "queue.task.solo == '1' and not alone", "false"),),
    ),
    "others run beside a solo task": (
        claims.test_a_solo_task_is_taken_alone_and_stays_alone,
        (("claim", "if running == 1 and runs_solo(key) then return reply end", ""),),
    ),
    "text is written whatever its number": (
        claims.test_text_that_is_there_is_not_said_twice,
        (("append", "local last = tonumber(hash[2])", "local last = n - 1"),),
    ),
    "a gap in the text goes unnoticed": (
        claims.test_a_gap_is_told,
        (("append", "if n > last + 1 then return {'gap', last} end", ""),),
    ),
    "an append that was stopped cannot go on": (
        claims.test_an_append_that_was_stopped_goes_on,
        (("append", "return not (there[1] and there[1][2][2] == 'text') and added.err or nil",
          "return added.err"),),
    ),
    "a reset without commit is overrun": (
        claims.test_nothing_is_said_behind_a_reset_without_commit,
        (("append", "or entry.kind == 'reset' and", "or false and"),),
    ),
    "an answer keeps its slot": (
        finishes.test_an_answer_ends_its_task_and_frees_the_slot,
        (("finish", "redis.call('SREM', held_key(task), task.id)", ""),),
    ),
    "a freed slot leaves no stamp": (
        finishes.test_an_answer_ends_its_task_and_frees_the_slot,
        (("finish", "'freed_at', int(now), 'zombies', '0')", "'zombies', '0')"),),
    ),
    "a repeated answer is lost": (
        finishes.test_an_answer_sent_again_is_told_so,
        (("finish", "taken and '' or task.token or ''", "''"),),
    ),
    "what was taken back counts as answered": (
        submits.test_a_running_task_is_cancelled_and_its_slot_stays_taken,
        (("cancel", "taken and '' or task.token or ''", "task.token or ''"),),
    ),
    "a broken stream is run again by its worker": (
        finishes.test_a_stream_that_is_handed_back_is_broken,
        (("finish", "task.streamed == '1' and (task.n > 0", "false and (task.n > 0"),),
    ),
    "a hand-back goes to the end of the queue": (
        finishes.test_what_is_handed_back_counts_nothing_and_is_next,
        (("finish", "put(queue, task, true)", "put(queue, task, false)"),),
    ),
    "an attempt is not counted": (
        finishes.test_a_failed_attempt_waits_for_its_next_one,
        (("finish", "task.attempts = task.attempts + 1", ""),),
    ),
    "an end without commit is followed by another": (
        finishes.test_an_end_that_was_not_committed_counts,
        (("finish", "local open = entry.kind == 'end'", "local open = false"),),
    ),
    "a name belongs to whoever asks": (
        workers.test_another_machine_is_refused_while_the_lease_runs,
        (("hello", "and hash[2] ~= lock and leased(worker) then", "and false then"),),
    ),
    "a restart waits like a stranger": (
        workers.test_a_restart_takes_the_name_at_once_and_what_it_ran_is_due,
        (("hello", "and hash[2] ~= lock and leased", "and leased"),),
    ),
    "what a predecessor ran is left to its deadline": (
        workers.test_a_restart_takes_the_name_at_once_and_what_it_ran_is_due,
        (("hello", "redis.call('ZADD', P .. 'grid:due', 'XX', '0', id)", ""),),
    ),
    "a renewal is anybody's": (
        partial(workers.test_who_must_not_renew,
                seeded=seed.worker(instance="other1", lock="x", host="other"),
                said=Renewed("superseded", "other")),
        (("renew", "if hash[1] ~= instance then", "if false then"),),
    ),
    "a worker is told of what it is only about to learn": (
        workers.test_what_it_has_without_knowing_is_told_once_settled,
        (("renew", "and number_of(task[1]) <= settled\n", "\n"),),
    ),
    "a worker is told of its predecessor's runs": (
        workers.test_what_it_has_without_knowing_is_told_once_settled,
        (("renew", "elseif instance_of(task[1]) == instance and", "elseif"),),
    ),
    "silence does not confirm": (
        workers.test_silence_confirms,
        (("renew", "or (number_of(token) <= settled and not named[token])", ""),),
    ),
    "silence confirms what is named": (
        workers.test_silence_confirms,
        (("renew", "number_of(token) <= settled and not named[token]",
          "number_of(token) <= settled"),),
    ),
    "homes are stamped by passes alone": (
        workers.test_the_first_renewal_that_is_ready_registers,
        (("renew", "for i = 14, 13 + models do redis.call('ZADD', P .. 'grid:models'",
          "for i = 14, 13 do redis.call('ZADD', P .. 'grid:models'"),),
    ),
    "a worker is forgotten with what it runs": (
        workers.test_what_it_still_has_must_go_first,
        (("forget", "and running + waiting > 0", "and false"),),
    ),
    "watching a kept task gives it a lease": (
        clients.test_watching_gives_no_lease_to_a_task_that_had_none,
        (("attach", "task.client == '1' and", ""),),
    ),
    "a connection's end ends the others": (
        clients.test_a_detach_takes_exactly_its_own,
        (("detach", "if name == ARGV[3] then", "if string.match(name, '^c1') then"),),
    ),
    "leaving ends what should outlive it": (
        partial(clients.test_a_task_may_outlive_its_listeners, rule=OnClose.KEEP),
        (("detach", "task.on_close == 'cancel'", "true"),
         ("detach", "task.on_close ~= 'cancel'", "false")),
    ),
    "a renewal of clients revives the ended": (
        clients.test_a_coordinator_hears_what_it_may_have_missed,
        (("renew_clients", "and hash[2] == '1' and", "and"),),
    ),
    "no disturbance is noticed": (
        partial(passes.test_a_pass_after_a_disturbance_holds, seeded=seed.mark(),
                run_id="restarted", replication_id=REPLICATION_ID),
        (("begin_pass", "or mark[1] ~= ARGV[2]", ""),),
    ),
    "a hold never ends": (
        passes.test_a_hold_of_a_clock_that_went_back_does_not_last_for_ever,
        (("begin_pass", "if hold > now + tonumber(ARGV[5]) then hold = 0 end", ""),),
    ),
    "a run is taken that is another one by now": (
        partial(passes.test_a_run_that_has_moved_on_is_left_alone,
                seeded=seed.running("t1", token="esxi1:2:1", due_ms=-5)),
        (("reap", "or task.token ~= token then", "then"),),
    ),
    "a run is taken without asking for its lease again": (
        passes.test_a_run_with_time_left_is_no_zombie,
        (("reap", "if not leased(task.worker) then return 'dead_worker' end",
          "do return 'dead_worker' end"),),
    ),
    "recoveries are not counted": (
        passes.test_a_dead_workers_run_is_next_in_its_queue,
        (("reap", "local recoveries = task.recoveries + 1", "local recoveries = task.recoveries"),),
    ),
    "a taken run frees its slot": (
        passes.test_a_dead_workers_run_is_next_in_its_queue,
        (("reap", "if taken then revoke(task) end", ""),),
    ),
    "a taken run stays in the worker's hands": (
        passes.test_a_dead_workers_run_is_next_in_its_queue,
        (("reap", "redis.call('SREM', held_key(task), task.id)", ""),),
    ),
    "a broken stream is run again by a reaper": (
        passes.test_a_broken_stream_fails,
        (("reap", "if said(task) then", "if false then"),),
    ),
    "a reaper never doubts": (
        partial(passes.test_in_doubt_no_deadline_counts, mark=seed.mark(hold_ms=1), run_id=RUN_ID),
        (("reap", "or now < tonumber(mark[3] or '0')", ""),),
    ),
    "a reaper trusts another server's pass": (
        partial(passes.test_in_doubt_no_deadline_counts, mark=seed.mark(), run_id="another server"),
        (("move", "mark[1] ~= run_id or", ""),),
    ),
    "the age of a task makes its worker a ghost": (
        passes.test_the_age_of_a_task_says_nothing,
        (("move", "now - newest(hash[2], hash[3], hash[4]) <=",
          "now - tonumber(task.queued_at) <="),),
    ),
    "a freed slot is no proof of life": (
        partial(passes.test_each_proof_of_life_keeps_a_worker_from_being_a_ghost, stamp="freed_at"),
        (("move", "newest(hash[2], hash[3], hash[4])", "newest(hash[2], hash[4])"),),
    ),
    "a moved task stays where it was": (
        passes.test_a_ghosts_tasks_go_where_they_are_served,
        (("move", "leave(from, task)\n", "\n"),),
    ),
    "a task is moved that is elsewhere": (
        partial(passes.test_a_task_that_is_elsewhere_is_left_alone, seeded=seed.pending("t1")),
        (("move", "or task.queue ~= from then", "then"),),
    ),
    "a running task expires": (
        partial(passes.test_only_what_is_queued_and_over_its_limit_expires,
                seeded=seed.running("t1", due_ms=-5)),
        (("expire", "or task.state ~= 'pending' or", "or"),),
    ),
    "a hold uses up the time to wait": (
        passes.test_a_limit_that_passed_during_a_hold_is_moved_on_by_it,
        (("expire", "if due >= from and due < till then", "if false then"),),
    ),
    "a task waits for a model that nobody has": (
        partial(passes.test_a_task_that_nobody_can_serve_fails, seeded=seed.pending("t1")),
        (("fail_homeless", "if stamp and now", "if stamp or now"),),
    ),
    "a home that was there a moment ago is none": (
        partial(passes.test_only_what_waits_without_a_home_fails,
                seeds=(seed.pending("t1"), seed.home(ago_ms=7_000))),
        (("fail_homeless", "<= tonumber(ARGV[4]) then return {'moved_on'} end\n-- A model",
          "<= 0 then return {'moved_on'} end\n-- A model"),),
    ),
    "a back-off ends at once": (
        partial(passes.test_only_a_back_off_that_is_over_ends, seeded=seed.waiting("t1", due_ms=1)),
        (("promote", "or not due or tonumber(due) > now then", "then"),),
    ),
    "a lost marker stays lost": (
        passes.test_markers_are_armed_again,
        (("tend", "    arm(ARGV[i])\n", "\n"),),
    ),
    "bytes are counted anew only when nothing is open": (
        passes.test_bytes_that_are_miscounted_are_counted_anew_while_tasks_are_open,
        (("tend", "if open > COUNT_MOST or open > 0", "if open > 0 or open > 0"),),
    ),
    "an open task is purged": (
        passes.test_an_open_task_is_never_purged,
        (("tend", "if state and not TERMINAL[state] then return end", ""),),
    ),
}  # fmt: skip

STORIES: dict[str, tuple[Callable[[Any], Any], tuple[Change, ...]]] = {
    "a zombie's end counts": (
        stories.test_a_zombie_reports_late,
        (("finish", "or task.token ~= token or", "or"),),
    ),
    "a zombie's text counts": (
        stories.test_a_zombie_reports_late,
        (("append", "if hash[1] ~= token or hash[5]", "if hash[5]"),),
    ),
    "a freed slot leaves no stamp, and its worker is a ghost": (
        stories.test_a_slot_that_was_just_freed_makes_no_ghost,
        (("finish", "'freed_at', int(now), 'zombies', '0')", "'zombies', '0')"),
         ("claim", "'polled_at', int(now), 'claim'", "'claim'")),
    ),
    "a cancelled claim that nobody heard of keeps its slot": (
        stories.test_a_cancelled_claim_whose_answer_was_lost_gives_its_slot_back,
        (("renew", "or (number_of(token) <= settled and not named[token])", ""),),
    ),
    "slots are counted by task": (
        stories.test_two_runs_of_one_task_are_two_slots,
        (("reap", "redis.call('SADD', worker .. ':revoked', task.token)",
          "redis.call('SADD', worker .. ':revoked', task.id)"),
         ("cancel", "redis.call('SADD', worker .. ':revoked', task.token)",
          "redis.call('SADD', worker .. ':revoked', task.id)")),
    ),
    "a late copy of a claim runs a task for nobody": (
        stories.test_a_late_copy_of_a_claim_takes_nothing,
        (("claim", "if k <= last then", "if false then"),),
    ),
    "an old process works on under its lost name": (
        stories.test_an_old_process_claims_nothing_under_its_lost_name,
        (("claim", "if hash[1] ~= instance then return {'superseded'} end", ""),),
    ),
    "a dead worker claims before it renews": (
        stories.test_a_dead_worker_that_comes_back_must_renew_first,
        (("claim", "if not leased(worker) then return {'renew'} end", ""),),
    ),
    "a predecessor's debts are kept for ever": (
        stories.test_a_new_process_owes_no_slot_to_its_predecessor,
        (("hello", "if instance_of(token) == instance then keep(token) end", "keep(token)"),
         ("renew", "if instance_of(token) ~= instance or (number_of(token) <= settled",
          "if instance_of(token) == instance and (number_of(token) <= settled")),
    ),
    "a reaper acts on what it read": (
        stories.test_a_reaper_that_read_long_ago_takes_nothing_from_the_living,
        (("reap", "if not leased(task.worker) then return 'dead_worker' end",
          "do return 'dead_worker' end"),),
    ),
    "what a worker does not know of is never told": (
        stories.test_what_a_server_gives_without_the_worker_knowing_is_handed_back,
        (("renew", "    held[#held + 1] = id\n    held[#held + 1] = task[1]\n", "\n"),),
    ),
    "two runs speak in one stream": (
        stories.test_text_of_two_runs_never_meets_in_one_stream,
        (("reap", "if said(task) then", "if false then"),),
    ),
    "a clock that steps kills the living": (
        stories.test_a_step_of_the_clock_takes_nothing_from_the_living,
        (("reap", "if holding(ARGV[7], tonumber(ARGV[8])) then return 'held' end", ""),),
    ),
}  # fmt: skip


def scripts_of(changes: tuple[Change, ...]) -> Any:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for script, old, new in changes:
        found[script] = (*found.get(script, ()), (old, new))
    return mutant(found)


def table(scripts: Any, tells: Callable[[World], Any]) -> None:
    with a_fake() as client:
        tells(World(client, scripts))


def story(scripts: Any, tells: Callable[[Any], Any]) -> None:
    with a_fake() as client:
        tells(stories.scene_of(World(client, scripts), scripts))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_catches(name: str) -> None:
    tells, changes = TABLES[name]
    scripts = scripts_of(changes)
    with pytest.raises(CAUGHT):
        table(scripts, tells)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_catches(name: str) -> None:
    tells, changes = STORIES[name]
    scripts = scripts_of(changes)
    with pytest.raises(CAUGHT):
        story(scripts, tells)


def test_without_a_mistake_nothing_is_caught() -> None:
    """Else the mutants would prove nothing."""
    for tells, _ in TABLES.values():
        table(clocked, tells)
    for tells, _ in STORIES.values():
        story(clocked, tells)
