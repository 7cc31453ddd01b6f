"""The sentences in which a task's client, and the log, are told what a pass has decided."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.model.task import Reason, Task


def homeless(model: str, reason: str) -> str:
    """Nobody can serve the model. reason: how its last home went."""
    return (
        f"no alternative worker can serve model '{model}' (reason={reason}); "
        "single point of failure"
    )


def homeless_cure(model: str) -> str:
    """What to do about a model without a home."""
    return (
        f"give '{model}' to a second worker (ollama pull {model} on its host), or bring its worker "
        f"back; then check with: cogrid spof"
    )


def broken(task: Task, reason: Reason) -> str:
    """The run broke off after text had been sent, or is a chore."""
    if task.kind.chore:
        return f"worker {task.worker} did not end its {task.kind} of {task.model} ({reason})"
    return (
        f"the answer of model '{task.model}' broke off on worker {task.worker} ({reason}); text "
        "had already been sent, so it was not run again: ask once more"
    )


def spent(task: Task, reason: Reason) -> str:
    """The task has been taken back too often."""
    return (
        f"the request to model '{task.model}' was taken back from a worker {task.recoveries + 1} "
        f"times, the last one was {task.worker} ({reason}); it was given up"
    )


def expired(task: Task, now_ms: int) -> str:
    """Nobody took the task in time."""
    waited_s = (now_ms - (task.queued_at_ms or task.submitted_at_ms)) / 1000
    return (
        f"no worker took the request to model '{task.model}' within {waited_s:.0f} s "
        f"(queue {task.queue})"
    )


def orphaned(limits: Limits) -> str:
    """No client is there any more."""
    return f"nobody has listened for {limits.orphan_grace_s:g} s"
