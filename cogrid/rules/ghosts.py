"""Workers that are not what they look like: ghosts, the dead that hold work, hashes left over."""

from __future__ import annotations

from collections.abc import Mapping

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Reason
from cogrid.model.worker import Worker
from cogrid.rules.grid import Grid
from cogrid.rules.health import ghost_evidence, is_dead, is_ghost, poll_evidence
from cogrid.rules.mend import REAP, drain, forget, strike_off
from cogrid.rules.moment import Moment
from cogrid.rules.waiting import queued

GHOST = Reason.GHOST_PENDING.value
DEAD = Reason.DEAD_WORKER.value
LEFTOVER = "leftover_hash"
GONE = "gone"
KINDS = (GHOST, DEAD, LEFTOVER)
"""The findings come in this order."""


def ghosts(snapshot: Snapshot, limits: Limits) -> tuple[Finding, ...]:
    """Every ghost; every dead worker that still holds or blocks tasks; every hash without a
    lease. A hash that does neither harm nor good also goes with its worker's next start."""
    grid = Grid.of(snapshot, limits)
    waits = queued(snapshot)
    found = [
        _finding(worker, grid, waits, kind)
        for worker in snapshot.workers
        if (kind := _kind(worker, grid, waits, limits))
    ]
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.subject)))


def gone(snapshot: Snapshot, limits: Limits) -> tuple[Finding, ...]:
    """Workers whose lease has run out and that hold and block nothing: no harm, but no use."""
    grid = Grid.of(snapshot, limits)
    waits = queued(snapshot)
    now_ms = snapshot.taken_at_ms
    found = (
        _finding(worker, grid, waits, GONE)
        for worker in snapshot.workers
        if worker.known and is_dead(worker, now_ms) and not _kind(worker, grid, waits, limits)
    )
    return tuple(sorted(found, key=lambda each: each.subject))


def _finding(worker: Worker, grid: Grid, waits: Mapping[str, int], kind: str) -> Finding:
    now_ms = grid.snapshot.taken_at_ms
    wrong = {
        GHOST: "is registered and renews its lease, but takes no work",
        DEAD: "is gone, and still holds or blocks work",
        LEFTOVER: "is gone and left its hash behind",
        GONE: "is gone; nothing waits for it",
    }
    where = worker.host or "its host"
    return Finding(
        kind=kind,
        subject=worker.id,
        what=f"{worker.id} {wrong[kind]}; start it again on {where}, as a service that restarts",
        evidence=_evidence(
            ghost_evidence(worker, now_ms) if kind == GHOST else _lease(worker, now_ms),
            worker,
            grid,
        ),
        mend=cure(worker, grid, waits, ghost=kind == GHOST),
        at_risk=_only_here(worker, grid),
    )


def cure(worker: Worker, grid: Grid, waits: Mapping[str, int], *, ghost: bool) -> str:
    """The command for a ghost or a dead worker. First what waits for it goes elsewhere, then what a
    ghost still runs comes to its end, then it is struck off. waits: ``queued`` of the grid."""
    if _blocks(worker, grid, waits):
        return REAP
    if ghost:
        return drain(worker.id) if worker.tasks else strike_off(worker.id)
    return REAP if worker.tasks else forget(worker.id)


def _blocks(worker: Worker, grid: Grid, waits: Mapping[str, int]) -> bool:
    """Tasks wait in its own queue, or for a model that nobody else serves."""
    own = grid.queue(worker.queue).depth
    return bool(own) or any(waits.get(model) for model in _only_here(worker, grid))


def _kind(worker: Worker, grid: Grid, waits: Mapping[str, int], limits: Limits) -> str | None:
    at = Moment.of(grid.snapshot, limits)
    if is_ghost(worker, at):
        return GHOST
    if not is_dead(worker, at.now_ms):
        return None
    if worker.tasks or _blocks(worker, grid, waits):
        return DEAD
    return LEFTOVER if worker.lease_until_ms is None else None


def _lease(worker: Worker, now_ms: int) -> str:
    if worker.lease_until_ms is None:
        return "a hash without a lease"
    return f"lease over for {(now_ms - worker.lease_until_ms) / 1000:.1f} s"


def _evidence(first: str, worker: Worker, grid: Grid) -> str:
    snapshot = grid.snapshot
    at_risk = _only_here(worker, grid)
    depth = grid.queue(worker.queue).depth
    facts = [
        first,
        f"host {worker.host or 'unknown'}",
        f"registered_at {worker.registered_at or 'never'}",
        poll_evidence(worker, snapshot.taken_at_ms),
        f"holds {len(worker.tasks)} of {worker.slots} slots"
        + (f" ({', '.join(worker.tasks)})" if worker.tasks else ""),
        f"{depth} in {worker.queue}",
    ]
    if at_risk:
        facts.append(f"nobody else serves {', '.join(at_risk)}")
    return "; ".join(facts)


def _only_here(worker: Worker, grid: Grid) -> tuple[str, ...]:
    """The worker's models that no capable home serves; the worker itself is none."""
    return tuple(
        offer.name
        for offer in worker.offers
        if not any(seat.capable for seat in grid.homes.get(offer.name, ()))
    )
