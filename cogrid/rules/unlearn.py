"""Whether the grid may forget a model: nobody has it, and nobody asks for it."""

from __future__ import annotations

import shlex

from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import OfferState, Worker
from cogrid.rules.counted import counted
from cogrid.rules.health import is_dead
from cogrid.rules.leaving import Objection


def may_unlearn(model: str, snapshot: Snapshot, waiting: int) -> Objection | None:
    """None where it may. waiting: open tasks for the model, wherever they stand."""
    having = [worker for worker in snapshot.workers if worker.offer(model)]
    if having:
        return _had(model, having, snapshot.taken_at_ms)
    if waiting:
        wait = "waits" if waiting == 1 else "wait"
        return Objection(
            f"{counted(waiting, 'task')} {wait} for {model}",
            f"give a worker the model, or end them first: cogrid task cancel --model "
            f"{shlex.quote(model)}",
        )
    return None


def _had(model: str, having: list[Worker], now_ms: int) -> Objection:
    """Of several workers the living come first: what a dead one says may soon be void."""
    living = [worker for worker in having if not is_dead(worker, now_ms)]
    names = ", ".join(worker.id for worker in living or having)
    first = (living or having)[0]
    worker = shlex.quote(first.id)
    if not living:
        what = f"{names}, dead, had {model} and may come back with it"
        return Objection(what, f"strike it off first: cogrid worker forget {worker}")
    offer = first.offer(model)
    if offer and offer.state is OfferState.MISSING:
        return Objection(
            f"the configuration of {names} names {model}, though its engine does not have it",
            f"take the model out of worker.models on {first.host or first.id}",
        )
    verb = "has" if len(living) == 1 else "have"
    return Objection(
        f"{names} still {verb} {model}",
        f"throw it away there: cogrid model remove {shlex.quote(model)} --worker {worker} --force",
    )
