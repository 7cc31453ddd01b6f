"""From acts to transitions: some a round trip, each with its own outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cogrid.model.limits import Limits
from cogrid.rules.act import (
    Act,
    CancelOrphan,
    DropHeld,
    DropQueued,
    Expire,
    FailHomeless,
    Forget,
    Move,
    Promote,
    Reap,
    Stamp,
    Tend,
)
from cogrid.store import passes
from cogrid.store.client import Store
from cogrid.store.keys import Keys
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call
from cogrid.store.tasks import cancel_orphan
from cogrid.store.workers import forget

A_TRIP = 25
"""Transitions in one round trip. A reap takes about 0.2 ms of the server's time, and the server may
do a whole trip before it looks at anybody else: 5 ms."""
PURGED = 500
"""Ended tasks that one call takes off the lists."""
BY = "reaper"


def carry_out(
    acts: Sequence[Act],
    store: Store,
    run_id: str,
    limits: Limits,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Act, Any]]:
    """Each act with its outcome, or with the StoreError that refused this one alone. A refusal
    that will pass by itself concerns all of them and is raised. go_on: asked before each further
    trip; where it says no, the rest is left to the next pass."""
    for at in range(0, len(acts), A_TRIP):
        if at and not go_on():
            return
        some = acts[at : at + A_TRIP]
        outcomes = store.try_all([transition(act, store.keys, run_id, limits) for act in some])
        for act, outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, StoreError) and outcome.passing:
                raise outcome
            yield act, outcome


def transition(act: Act, keys: Keys, run_id: str, limits: Limits) -> Call[Any]:
    """The transition that does it. run_id: of the server that this pass began on."""
    match act:
        case Reap():
            return passes.reap(
                keys, act.task, act.token, act.queue, act.broken, act.spent, run_id, limits
            )
        case Move():
            return passes.move(
                keys, act.task, act.from_queue, act.queue, act.evidence, run_id, limits
            )
        case Promote():
            return passes.promote(keys, act.task, act.queue)
        case Expire():
            return passes.expire(keys, act.task, act.message, run_id, limits)
        case FailHomeless():
            return passes.fail_homeless(keys, act.task, act.message, run_id, limits)
        case CancelOrphan():
            window_ms = passes.ms(limits.pass_window_s)
            return cancel_orphan(keys, act.task, act.message, run_id, window_ms)
        case Stamp():
            return passes.stamp_homes(keys, act.models)
        case Tend():
            return passes.tend(keys, act.queues, act.stale, PURGED)
        case DropQueued():
            return passes.drop_queued(keys, act.queue, act.tasks)
        case DropHeld():
            return passes.drop_held(keys, act.worker, act.tasks)
        case Forget():
            return forget(keys, act.worker, False, BY)
