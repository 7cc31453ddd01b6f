"""Who may take a waiting task from where it waits, and why each other worker cannot.

``explain`` asks it for one task and every worker, ``why-idle`` for one worker and every task that
waits, ``diagnose stuck`` for the heads of the queues; so the three cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import WorkerId, queue_pool, queue_worker
from cogrid.model.task import State, Task
from cogrid.model.worker import Offer, OfferState, Worker, WorkerState
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.health import ghost_evidence, is_dead, is_ghost
from cogrid.rules.homes import why_no_home
from cogrid.rules.moment import Moment
from cogrid.rules.pick import fits, lacking
from cogrid.rules.request import ask_of
from cogrid.rules.seen import WISH_DRAIN


@dataclass(frozen=True, slots=True)
class Taker:
    """takes: it may take the task from its queue. now: a slot is free for it. why: what stands
    against the one or the other, "" where nothing does."""

    worker: WorkerId
    takes: bool
    now: bool
    why: str


def takers(task: Task, grid: Grid, limits: Limits) -> tuple[Taker, ...]:
    """Every worker's answer for one task, in the order of the snapshot."""
    return tuple(taker(worker, task, grid, limits) for worker in grid.snapshot.workers)


def taker(worker: Worker, task: Task, grid: Grid, limits: Limits) -> Taker:
    """One worker's answer for one task."""
    why = why_never(worker, task, grid, limits)
    if why:
        return Taker(worker.id, False, False, why)
    why = why_not_now(worker, task)
    return Taker(worker.id, True, not why, why)


def why_never(worker: Worker, task: Task, grid: Grid, limits: Limits) -> str:
    """Why the worker does not take the task from where it waits, as things stand; "" where it
    does."""
    if task.kind.chore:
        return _why_no_chore(worker, task, grid, limits)
    at, offer = Moment.of(grid.snapshot, limits), worker.offer(task.model)
    why = why_no_home(worker, task.model, at)
    if why or offer is None:
        return why
    unable = _unable(worker, offer, task)
    return unable or _elsewhere(worker, task) or _not_ready(worker, offer, at.now_ms)


def why_not_now(worker: Worker, task: Task) -> str:
    """Why the worker, which takes such tasks, does not take this one at this moment."""
    if task.kind.chore:  # it takes no slot
        return ""
    if task.solo and worker.busy:
        return f"the task must run alone, and {worker.busy} of {worker.slots} slots are taken"
    return "" if worker.free else slots_taken(worker)


def slots_taken(worker: Worker) -> str:
    """How many of its slots are taken, and by what."""
    revoked = len(worker.revoked)
    held = f", {revoked} by what was taken from it and not yet let go" if revoked else ""
    return f"{worker.busy} of {worker.slots} slots are taken{held}"


def _why_no_chore(worker: Worker, task: Task, grid: Grid, limits: Limits) -> str:
    """A chore is one worker's, whether or not that one has the model."""
    at = Moment.of(grid.snapshot, limits)
    asked = queue_worker(task.queue) or task.worker
    if worker.id != asked:
        return f"it is asked of {asked} alone"
    if is_dead(worker, at.now_ms):
        return "dead"
    if is_ghost(worker, at):
        return f"ghost: {ghost_evidence(worker, at.now_ms)}"
    able = worker.state in (WorkerState.READY, WorkerState.DRAINING)
    return "" if able else worker.state.value


def _unable(worker: Worker, offer: Offer, task: Task) -> str:
    ask = ask_of(task)
    if fits(Seat(worker, offer, capable=True, able=True), ask):
        return ""
    return f"its {task.model} cannot {lacking(ask)}"


def _elsewhere(worker: Worker, task: Task) -> str:
    if task.state is not State.PENDING:
        return ""
    owner = queue_worker(task.queue)
    if owner == worker.id:
        return ""
    if owner:
        return f"the task waits in {owner}'s own queue"
    pool = queue_pool(task.queue)
    return "" if pool == worker.pool else f"it is in pool {worker.pool}, the task waits in {pool}"


def _not_ready(worker: Worker, offer: Offer, now_ms: int) -> str:
    if worker.wish.state == WISH_DRAIN:
        return f"asked to drain{f' by {worker.wish.by}' if worker.wish.by else ''}"
    if worker.state is not WorkerState.READY:
        return worker.state.value
    because = f": {offer.reason}" if offer.reason else ""
    if offer.state is OfferState.QUARANTINED:
        since = f" for {(now_ms - offer.since_ms) / 1000:.0f} s" if offer.since_ms else ""
        return f"model in quarantine{since}{because}"
    return "model is being probed" if offer.state is OfferState.PROBING else ""
