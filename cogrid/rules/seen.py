"""What a pass has read, and how it reads the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Task
from cogrid.model.worker import Worker, WorkerState
from cogrid.rules.grid import Grid

WISH_DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that a plan is made from. due: (task, since when), the longest first. orphans:
    tasks whose client's lease has run out. held: what dead workers are said to run. waiting: the
    first ids of the queues that need a look. tasks: the hashes of all of these, None where there
    is none. next_ms: when something will be due next (Redis ms), None where nothing is in sight.
    cut: there was more than one pass may read."""

    grid: Grid
    due: tuple[tuple[TaskId, int], ...] = ()
    orphans: tuple[TaskId, ...] = ()
    held: dict[WorkerId, tuple[TaskId, ...]] = field(default_factory=dict)
    waiting: dict[Queue, tuple[TaskId, ...]] = field(default_factory=dict)
    tasks: dict[TaskId, Task | None] = field(default_factory=dict)
    next_ms: int | None = None
    cut: bool = False

    @property
    def now_ms(self) -> int:
        """The instant of the reading (Redis ms)."""
        return self.grid.snapshot.taken_at_ms

    @property
    def hold_until_ms(self) -> int:
        """Until when nothing is ended because of a deadline (Redis ms)."""
        return self.grid.snapshot.reaper.hold_until_ms


def as_wished(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which a worker that was asked to drain already does: from the wish on it is
    handed nothing, though its state follows only with its next renew."""
    return replace(snapshot, workers=tuple(_as_wished(worker) for worker in snapshot.workers))


def _as_wished(worker: Worker) -> Worker:
    if worker.state is WorkerState.READY and worker.wish.state == WISH_DRAIN:
        return replace(worker, state=WorkerState.DRAINING)
    return worker
