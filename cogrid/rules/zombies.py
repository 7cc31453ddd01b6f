"""Why a run is taken back from its worker."""

from __future__ import annotations

from cogrid.model.names import token_instance
from cogrid.model.task import Reason, Task
from cogrid.model.worker import Worker
from cogrid.rules.health import is_dead


def why_taken(
    task: Task, due_ms: int | None, worker: Worker | None, now_ms: int, hold_until_ms: int = 0
) -> tuple[Reason, str] | None:
    """The reason and the evidence in numbers; None where the run goes on.

    due_ms: its progress deadline, None where it is not known to have passed. worker: who runs it,
    None where it has neither lease nor hash. Before hold_until_ms only the run of a process that
    was replaced is taken: that one needs no clock.
    """
    known = worker is not None and worker.known
    if worker and known and worker.instance != token_instance(task.token or ""):
        return Reason.RESTARTED, "its process was replaced"
    if now_ms < hold_until_ms:
        return None
    if worker is None or is_dead(worker, now_ms):
        return Reason.DEAD_WORKER, lease_evidence(worker, now_ms)
    if due_ms is not None and due_ms <= now_ms:
        return Reason.ZOMBIE_RUNNING, zombie_evidence(task, due_ms, now_ms)
    return None


def zombie_evidence(task: Task, due_ms: int, now_ms: int) -> str:
    """How long it has run, how far it came, how long progress is overdue."""
    ran_s = (now_ms - (task.claimed_at_ms or now_ms)) / 1000
    said = f"{task.n} pieces of text" if task.n else "no text"
    return (
        f"running for {ran_s:.1f} s, {said}, progress overdue for {(now_ms - due_ms) / 1000:.1f} s"
    )


def lease_evidence(worker: Worker | None, now_ms: int) -> str:
    """How long a dead worker has been without a lease."""
    if worker is None or not worker.lease_until_ms:
        return "no lease"
    return f"lease ran out {(now_ms - worker.lease_until_ms) / 1000:.1f} s ago"
