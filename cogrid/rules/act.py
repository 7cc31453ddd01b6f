"""What a pass may do: decisions as values. Each act checks its ground once more when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.task import Reason


@dataclass(frozen=True, slots=True)
class Reap:
    """Take a run back. queue: where the task goes on. broken, spent: what its client is told where
    text was already sent, or where its recoveries are used up. homes: who can serve it. said: text
    was already sent, so it ends."""

    task: TaskId
    token: Token
    worker: WorkerId
    queue: Queue
    reason: Reason
    evidence: str
    broken: str
    spent: str
    homes: tuple[WorkerId, ...] = ()
    said: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Put a waiting task into another queue. worker: whose own queue it leaves, None for a shared
    one."""

    task: TaskId
    worker: WorkerId | None
    from_queue: Queue
    queue: Queue
    reason: Reason
    evidence: str
    homes: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, slots=True)
class Promote:
    """End a back-off: the task waits in a queue again."""

    task: TaskId
    queue: Queue
    homes: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, slots=True)
class Expire:
    """End a task that has waited for as long as it may."""

    task: TaskId
    message: str


@dataclass(frozen=True, slots=True)
class FailHomeless:
    """End a task whose model nobody can serve. reason: how its last home went. hint: the cure."""

    task: TaskId
    model: str
    reason: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class CancelOrphan:
    """End a task that no client is known to want any more."""

    task: TaskId
    message: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """These models have a home now."""

    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tend:
    """Arm the markers of these queues, take ended tasks off the lists, and drop what is due but
    has no task (stale)."""

    queues: tuple[Queue, ...]
    stale: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True)
class DropQueued:
    """Drop entries of a queue that no task confirms."""

    queue: Queue
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class DropHeld:
    """Drop runs of a dead worker that no task confirms."""

    worker: WorkerId
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Strike off a dead worker whose hash is gone and that holds nothing."""

    worker: WorkerId


TaskAct = Reap | Move | Promote | Expire | FailHomeless | CancelOrphan
Act = TaskAct | Stamp | Tend | DropQueued | DropHeld | Forget
