"""What the reaper says of each task: a line of its log, and the same as fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.rules.act import (
    Act,
    CancelOrphan,
    DropHeld,
    DropQueued,
    Expire,
    FailHomeless,
    Forget,
    Move,
    Promote,
    Reap,
)


@dataclass(frozen=True, slots=True)
class Line:
    """edge: requeue, fail, dead, expire, promote, cancel, forget or repair. Fields that do not
    apply are empty. message: what the client is told. hint: what to do about it."""

    edge: str
    task: str = ""
    worker: str = ""
    reason: str = ""
    evidence: str = ""
    queue: str = ""
    homes: tuple[str, ...] = ()
    message: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """The line as it is logged and printed."""
        head = f"[reaper] {self.edge.upper()}"
        if self.message:
            return f"{head} task={self.task}: {self.message}"
        words = {
            "task": self.task,
            "worker_id": self.worker,
            "reason": self.reason,
            "evidence": f'"{self.evidence}"' if self.evidence else "",
            "queue": self.queue,
            "homes": ",".join(self.homes),
        }
        return " ".join((head, *(f"{name}={said}" for name, said in words.items() if said)))


def expected(act: Act) -> Line | None:
    """What will be said if the act finds everything as it was read; None for mere upkeep."""
    match act:
        case Reap(said=True):
            return _reap_line(act, "failed")
        case Reap():
            return _reap_line(act, "requeued")
        case Move():
            return _move_line(act, act.reason, act.queue)
        case Promote():
            return Line("promote", act.task, queue=act.queue, homes=act.homes)
        case Expire() | CancelOrphan():
            return _end_line(act)
        case FailHomeless():
            return Line("fail", act.task, reason=act.reason, message=act.message, hint=act.hint)
        case Forget():
            return Line("forget", worker=act.worker, evidence="no lease, no hash, holds nothing")
        case DropQueued():
            return Line("repair", queue=act.queue, evidence=_unconfirmed(len(act.tasks)))
        case DropHeld():
            return Line("repair", worker=act.worker, evidence=_unconfirmed(len(act.tasks)))
        case _:
            return None


def told(act: Act, outcome: Any) -> Line | None:
    """What is said after the act; None where it found that things had moved on."""
    match act:
        case Reap() if outcome.status in ("requeued", "failed", "dead"):
            return _reap_line(act, outcome.status, outcome.reason, outcome.queue)
        case Move() if outcome.status == "ok":
            return _move_line(act, outcome.reason, outcome.queue)
        case Move() if outcome.status == "failed":
            message = f"worker {act.worker} is gone ({outcome.reason})"
            return Line("fail", act.task, reason=outcome.reason, message=message)
        case Promote() if outcome.status == "ok":
            return Line("promote", act.task, queue=outcome.queue, homes=act.homes)
        case DropQueued() | DropHeld():
            return expected(act) if outcome else None
        case Expire() | FailHomeless() | CancelOrphan() | Forget() if outcome.status == "ok":
            return expected(act)
        case _:
            return None


def _reap_line(act: Reap, status: str, reason: str = "", queue: str = "") -> Line:
    why = reason or act.reason
    if status == "failed":
        return Line("fail", act.task, act.worker, why, act.evidence, message=act.broken)
    if status == "dead":
        return Line("dead", act.task, act.worker, why, act.evidence, message=act.spent)
    to = queue or act.queue
    return Line("requeue", act.task, act.worker, why, act.evidence, to, act.homes)


def _move_line(act: Move, reason: str, queue: str) -> Line:
    return Line("requeue", act.task, act.worker or "", reason, act.evidence, queue, act.homes)


def _end_line(act: Expire | CancelOrphan) -> Line:
    edge = "expire" if isinstance(act, Expire) else "cancel"
    return Line(edge, act.task, message=act.message)


def _unconfirmed(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'} without a task"
