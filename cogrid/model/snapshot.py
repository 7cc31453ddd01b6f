"""The grid at one instant: read once, decided on, printed, never asked again."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogrid.model.names import Queue, WorkerId, queue_model, queue_pool, queue_worker
from cogrid.model.task import Task
from cogrid.model.worker import Worker


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """One non-empty queue. oldest_ms: when its oldest task was queued (Redis ms), 0 if not read.
    active_ms: when it was last served or became non-empty. gap_s: mean seconds between claims of
    the last ten minutes, 0 if unknown; gap_sd_s: their standard deviation. waiting: (band, user)
    -> tasks, empty if not read."""

    name: Queue
    depth: int
    oldest_ms: int = 0
    active_ms: int = 0
    gap_s: float = 0.0
    waiting: dict[tuple[int, str], int] = field(default_factory=dict, hash=False)
    gap_sd_s: float = 0.0

    @property
    def pool(self) -> str:
        return queue_pool(self.name)

    @property
    def worker(self) -> WorkerId | None:
        return queue_worker(self.name)

    @property
    def model(self) -> str | None:
        return queue_model(self.name)


@dataclass(frozen=True, slots=True)
class Server:
    """The Redis or Valkey server. Texts are "" and numbers 0 where it does not let us read them."""

    version: str = ""
    flavour: str = "redis"
    mode: str = ""
    role: str = ""
    run_id: str = ""
    replication_id: str = ""
    maxmemory_bytes: int = 0
    used_memory_bytes: int = 0
    policy: str = ""
    append_only: bool | None = None
    rdb_ok: bool | None = None
    loading: bool = False


@dataclass(frozen=True, slots=True)
class ReaperMark:
    """What ``grid:reaper`` says (Redis ms; 0 where there was never a pass)."""

    last_pass_ms: int = 0
    hold_until_ms: int = 0
    run_id: str = ""
    schema: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a decision may look at. taken_at_ms is Redis time.

    workers: all of ``grid:workers``; where asked for, also hashes without a lease (lease None).
    model_homes: model -> when it last had a home (Redis ms). tasks: those that were read in full
    (the reaper reads what is due, status what runs). counts: tasks by state.
    """

    taken_at_ms: int
    workers: tuple[Worker, ...] = ()
    queues: tuple[QueueDepth, ...] = ()
    tasks: tuple[Task, ...] = ()
    model_homes: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    reaper: ReaperMark = ReaperMark()
    server: Server = Server()
    queued_bytes: int = 0
    scan_cut: bool = False

    def worker(self, worker_id: str) -> Worker | None:
        """The worker of that name."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)

    def queue(self, name: str) -> QueueDepth:
        """A queue's depth; an empty one where it has none."""
        return next((q for q in self.queues if q.name == name), QueueDepth(Queue(name), 0))
