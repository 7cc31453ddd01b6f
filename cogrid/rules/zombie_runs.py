"""Runs that make no progress, as findings: what the reaper is about to take back."""

from __future__ import annotations

from collections.abc import Iterable

from cogrid.model.finding import Finding
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Reason, State, Task
from cogrid.rules.mend import REAP
from cogrid.rules.zombies import why_taken


def zombie_runs(due: Iterable[tuple[Task, int]], snapshot: Snapshot) -> tuple[Finding, ...]:
    """due: tasks whose time is over, and since when (Redis ms)."""
    now_ms, hold_ms = snapshot.taken_at_ms, snapshot.reaper.hold_until_ms
    found = []
    for task, at_ms in due:
        worker = snapshot.worker(task.worker or "")
        running = task.state is State.RUNNING
        why = why_taken(task, at_ms, worker, now_ms, hold_ms) if running else None
        if why and why[0] is Reason.ZOMBIE_RUNNING:
            found.append(
                Finding(
                    Reason.ZOMBIE_RUNNING.value,
                    task.id,
                    f"task {task.id} makes no progress on worker {task.worker}",
                    f"{why[1]}; model {task.model}, attempts {task.attempts}, "
                    f"recoveries {task.recoveries}",
                    REAP,
                    (task.id,),
                )
            )
    return tuple(sorted(found, key=lambda each: each.subject))
