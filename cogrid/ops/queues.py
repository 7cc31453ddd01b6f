"""Queues as an operator sees them: how deep, how old, how quick, and who serves them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.snapshot import QueueDepth
from cogrid.ops.doubt import fleet_unknown
from cogrid.ops.status import servable
from cogrid.ops.times import age_s
from cogrid.rules.grid import Grid
from cogrid.store.client import Store
from cogrid.store.gaps import Part
from cogrid.store.snapshot import read_snapshot


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue that holds something. oldest_s: the longest wait in it. gap_s, gap_sd_s: mean and
    standard deviation of the seconds between two claims in the last ten minutes; drained_per_min:
    the same as a rate; null where none was measured. wait_s: until what is in it now is claimed, at
    that rate. servable: somebody that is up can serve it. served_by: workers that take from it
    now. depth, servable: null where that cannot be read."""

    name: str
    pool: str
    model: str | None
    worker: str | None
    depth: int | None
    users: int
    oldest_s: float | None
    gap_s: float | None
    gap_sd_s: float | None
    drained_per_min: float | None
    wait_s: float | None
    servable: bool | None
    served_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queues:
    """The deepest first."""

    queues: tuple[QueueFacts, ...]


def queues(store: Store, limits: Limits) -> Queues:
    """Every queue that holds something."""
    snapshot = store.read(read_snapshot(store.keys, waits=True, info=False))
    grid = Grid.of(snapshot, limits)
    deepest = sorted(snapshot.queues, key=lambda queue: (-queue.depth, queue.name))
    return Queues(tuple(_facts(queue, grid, limits, store.unread) for queue in deepest))


def _facts(queue: QueueDepth, grid: Grid, limits: Limits, unread: Collection[Part]) -> QueueFacts:
    gap_s, hidden = queue.gap_s or None, Part.QUEUED in unread
    return QueueFacts(
        name=queue.name,
        pool=queue.pool,
        model=queue.model,
        worker=queue.worker,
        depth=None if hidden else queue.depth,
        users=len({user for _, user in queue.waiting}),
        oldest_s=age_s(grid.snapshot.taken_at_ms, queue.oldest_ms),
        gap_s=gap_s and round(gap_s, 3),
        gap_sd_s=round(queue.gap_sd_s, 3) if gap_s else None,
        drained_per_min=gap_s and round(60 / gap_s, 1),
        wait_s=None if hidden else gap_s and round(queue.depth * gap_s, 1),
        servable=None if fleet_unknown(unread) else servable(queue, grid, limits),
        served_by=_servers(queue, grid),
    )


def _servers(queue: QueueDepth, grid: Grid) -> tuple[str, ...]:
    if queue.worker:
        able = {seat.worker.id for seats in grid.homes.values() for seat in seats if seat.able}
        return (queue.worker,) if queue.worker in able else ()
    seats = grid.homes.get(queue.model or "", ())
    return tuple(seat.worker.id for seat in seats if seat.able and seat.worker.pool == queue.pool)
