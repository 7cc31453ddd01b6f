"""Why waiting tasks leave a queue: its worker will not take them, or others could sooner."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.snapshot import QueueDepth
from cogrid.model.task import Reason
from cogrid.model.worker import Worker, WorkerState
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.health import ghost_evidence, is_dead, is_ghost
from cogrid.rules.moment import Moment
from cogrid.rules.routing import Routing
from cogrid.rules.zombies import lease_evidence


@dataclass(frozen=True, slots=True)
class Leave:
    """after_s: a task must have waited for so long. most: so many may leave in one pass, None: all.
    to_free: only to where a slot is free."""

    reason: Reason
    evidence: str
    after_s: float = 0.0
    most: int | None = None
    to_free: bool = False


def why_leave(queue: QueueDepth, grid: Grid, routing: Routing, limits: Limits) -> Leave | None:
    """The reason to look at this queue's tasks one by one; None where they are well there."""
    if queue.worker is None:
        return _shared(queue, queue.model or "", grid, routing, limits)
    owner = grid.workers.get(queue.worker)
    if owner is None or not owner.known:
        return Leave(Reason.DEAD_WORKER, "its hash is gone" if owner else "no lease")
    return _away(owner, queue, grid, limits) or _full(owner, grid, limits)


def is_lost(queue: QueueDepth, grid: Grid, limits: Limits) -> bool:
    """True for a shared queue that nobody serves and nobody is about to serve."""
    return queue.model is not None and is_homeless(queue.model, grid, limits)


def is_homeless(model: str, grid: Grid, limits: Limits) -> bool:
    """True when the model has had no home for home_grace_s, and no worker is there that has yet to
    say what it serves."""
    snapshot, at = grid.snapshot, Moment.of(grid.snapshot, limits)
    if grid.homes.get(model) or at.now_ms < at.hold_until_ms:
        return False
    if any(is_mute(worker, at) for worker in snapshot.workers):
        return False
    return at.now_ms - snapshot.model_homes.get(model, 0) > limits.home_grace_s * 1000


def why_homeless(model: str, said: str, grid: Grid, limits: Limits) -> str:
    """How the model's last home went, in one word. said: why the task was moved last, which counts
    where no worker has the model any more."""
    workers = [worker for worker in grid.snapshot.workers if worker.offer(model)]
    if not workers:
        return said or "no_worker"
    return _why_not(max(workers, key=lambda worker: worker.beat_at_ms), model, grid, limits)


def _why_not(worker: Worker, model: str, grid: Grid, limits: Limits) -> str:
    at, offer = Moment.of(grid.snapshot, limits), worker.offer(model)
    if is_dead(worker, at.now_ms):
        return Reason.DEAD_WORKER
    if is_ghost(worker, at):
        return Reason.GHOST_PENDING
    if worker.state is WorkerState.DRAINING or offer is None:
        return worker.state
    return offer.state


def is_mute(worker: Worker, at: Moment) -> bool:
    """Its lease runs, but it has not said what it serves: its hash was deleted, or it has only
    just said hello."""
    if is_dead(worker, at.now_ms):
        return False
    fresh = at.now_ms - worker.hello_at_ms <= at.limits.home_grace_s * 1000
    return not worker.known or (
        worker.state is WorkerState.STARTING and not worker.offers and fresh
    )


def _away(owner: Worker, queue: QueueDepth, grid: Grid, limits: Limits) -> Leave | None:
    at = Moment.of(grid.snapshot, limits)
    if is_dead(owner, at.now_ms):
        held = at.now_ms < at.hold_until_ms
        return None if held else Leave(Reason.DEAD_WORKER, lease_evidence(owner, at.now_ms))
    if is_ghost(owner, at):
        return Leave(Reason.GHOST_PENDING, ghost_evidence(owner, at.now_ms))
    if owner.state is not WorkerState.READY:
        return Leave(Reason.NOT_READY, f"it is {owner.state}")
    if owner.pool != queue.pool:
        return Leave(Reason.NOT_READY, f"it is in pool {owner.pool} now")
    return None


def _full(owner: Worker, grid: Grid, limits: Limits) -> Leave | None:
    if owner.free:
        return None
    others = (worker for worker in grid.workers.values() if worker.id != owner.id)
    free = sum(worker.free for worker in others if worker.state is WorkerState.READY)
    if not free:
        return None
    told = f"{owner.busy} of {owner.slots} slots taken, others are free"
    return Leave(Reason.WORKER_FULL, told, limits.own_queue_wait_s, free, to_free=True)


def _shared(
    queue: QueueDepth, model: str, grid: Grid, routing: Routing, limits: Limits
) -> Leave | None:
    seats = grid.homes.get(model, ())
    here = tuple(seat for seat in seats if seat.worker.pool == queue.pool)
    there = tuple(seat for seat in seats if _elsewhere(seat, queue, routing))
    if there and not here:
        return Leave(Reason.BETTER_POOL, f"no home in pool {queue.pool}", limits.pool_wait_s)
    free = sum(seat.free for seat in there)
    if not free or any(seat.free for seat in here):
        return None
    told = f"no slot free in pool {queue.pool}"
    return Leave(Reason.BETTER_POOL, told, limits.pool_wait_s, free, to_free=True)


def _elsewhere(seat: Seat, queue: QueueDepth, routing: Routing) -> bool:
    return seat.worker.pool != queue.pool and seat.worker.pool not in routing.closed
