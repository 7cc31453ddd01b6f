"""What stands in the lists of the grid, read to be compared with what the tasks say of themselves.

The readings are several round trips, so a grid at work moves on between them: what looks wrong in
one inventory counts only if it looks the same in another.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.record import Record
from cogrid.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Kept:
    """ttl_ms: of the task's hash, None where it never ends. body: its request is there. last: kind
    of the last entry of its log, "" where that was not read."""

    ttl_ms: int | None
    body: bool
    last: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """open, ended, dead: ids in grid:due, grid:finished, grid:dead. clients: ids in grid:clients.
    queued, held: what stands in queues and in workers' sets. unlisted: queues that have something
    and are not in grid:queues, of those that could be. records: of every id in any of them, None
    where there is no hash. cut: some list was longer than may be read, so absence proves nothing.
    """

    snapshot: Snapshot
    open: frozenset[TaskId] = frozenset()
    ended: frozenset[TaskId] = frozenset()
    dead: frozenset[TaskId] = frozenset()
    clients: frozenset[TaskId] = frozenset()
    queued: dict[Queue, tuple[TaskId, ...]] = field(default_factory=dict)
    held: dict[WorkerId, tuple[TaskId, ...]] = field(default_factory=dict)
    unlisted: tuple[Queue, ...] = ()
    records: dict[TaskId, Record | None] = field(default_factory=dict)
    kept: dict[TaskId, Kept] = field(default_factory=dict)
    cut: bool = False
