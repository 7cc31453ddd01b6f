"""A model that the last worker has thrown away, or taken along, is none any more that the grid asks
for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from cogrid.errors import ConflictError, NotFoundError
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import OfferState
from cogrid.ops.chosen import Choice, choose
from cogrid.ops.found import the_model
from cogrid.ops.operator import operator
from cogrid.rules.unlearn import may_unlearn
from cogrid.rules.waiting import queued
from cogrid.store.administration import forget_model, note
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_lists import Listing

LOOK_S = 0.25
"""Between two looks whether the workers have told that they no longer have it."""
TOLD_WITHIN_S = 30.0
"""A worker tells at once what it serves; this is a renewal that was lost, and some."""
PASSES = 2
"""So many ticks after its last home, no pass of the reaper is about that still knows the model."""


@dataclass(frozen=True, slots=True)
class Unlearned:
    """last_home_s: since when no worker can serve it. by: null in a dry run. done: the grid asks
    for it no more."""

    model: str
    last_home_s: float
    dry_run: bool = True
    by: str | None = None
    done: bool = False


def plan_forget(store: Store, name: str) -> Unlearned:
    """What is known of a model that nobody has. NotFoundError; ConflictError where a worker has it
    or a task waits for it."""
    snapshot = _read(store)
    model = the_model(snapshot, name)
    waiting = choose(store, Choice(model=model), (Listing.OPEN,)).fitting
    objection = may_unlearn(model, snapshot, waiting)
    if objection:
        raise ConflictError(objection.message, objection.hint)
    if model not in snapshot.model_homes:
        raise NotFoundError(f"no worker ever had {model!r}", "there is nothing to forget")
    age_ms = max(0, snapshot.taken_at_ms - snapshot.model_homes[model])
    return Unlearned(model, age_ms / 1000)


def forget(
    store: Store, limits: Limits, plan: Unlearned, sleep: Callable[[float], None] = time.sleep
) -> Unlearned:
    """Do it. ConflictError where it has come back meanwhile."""
    if not unlearn(store, limits, plan.model, (), sleep):
        raise ConflictError(
            f"a worker has {plan.model} again, or a task waits for it",
            "nothing was done; look at it anew",
        )
    return replace(plan, dry_run=False, by=operator(), done=True)


def unlearn(
    store: Store, limits: Limits, model: str, gone: Collection[str],
    sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> bool:  # fmt: skip
    """Know the model no more, once nobody has it and nothing waits for it; False where somebody
    still does. gone: workers that have thrown it away. One whose configuration names it misses it
    from now on, so there it stays known."""
    if _having(_read(store), model) - set(gone):
        return False
    end_s = clock() + TOLD_WITHIN_S
    while _having(snapshot := _read(store), model) and clock() < end_s:
        sleep(LOOK_S)
    homeless_s = (snapshot.taken_at_ms - snapshot.model_homes.get(model, 0)) / 1000
    sleep(max(0.0, PASSES * limits.tick_s - homeless_s))
    snapshot = _read(store)
    if any(worker.offer(model) for worker in snapshot.workers) or queued(snapshot)[model]:
        return False
    store.do(note(store.keys, f"model forgotten: {model} by {operator()}"))
    return store.do(forget_model(store.keys, model))


def _having(snapshot: Snapshot, model: str) -> set[str]:
    """Workers that say that they have it, in whatever state."""
    offers = {worker.id: worker.offer(model) for worker in snapshot.workers}
    return {
        worker
        for worker, offer in offers.items()
        if offer and offer.state is not OfferState.MISSING
    }


def _read(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False))
