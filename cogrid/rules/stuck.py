"""Tasks that wait for nothing: without a home, behind one without, or beside a free slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId
from cogrid.model.task import State, Task
from cogrid.rules.counted import counted
from cogrid.rules.grid import Grid
from cogrid.rules.health import poll_evidence
from cogrid.rules.homes import why_no_home
from cogrid.rules.mend import REAP, cancel_all, spof, unlearn
from cogrid.rules.moment import Moment
from cogrid.rules.takers import takers

NO_HOME = "stuck_no_home"
BEHIND = "stuck_behind"
UNCLAIMED = "stuck_unclaimed"
OVERDUE = "stuck_overdue"
KINDS = (NO_HOME, BEHIND, UNCLAIMED, OVERDUE)
"""The findings come in this order."""

NAMED = 10
"""So many tasks are named in one finding; the evidence has their number."""
_TOLD = 3
"""So many workers are named in the evidence."""


def stuck(
    waiting: Mapping[Queue, tuple[Task, ...]],
    due: Iterable[tuple[Task, int]],
    grid: Grid,
    limits: Limits,
) -> tuple[Finding, ...]:
    """waiting: the first tasks of each queue, in its order. due: tasks that somebody should have
    looked at, and since when (Redis ms)."""
    found: list[Finding] = []
    for queue, tasks in waiting.items():
        found += _without_home(queue, tasks, grid, limits)
        found += _unclaimed(queue, tasks, grid, limits)
    found += (each for task, at_ms in due if (each := _overdue(task, at_ms, grid, limits)))
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.subject)))


def _without_home(
    queue: Queue, tasks: tuple[Task, ...], grid: Grid, limits: Limits
) -> Iterator[Finding]:
    homeless = [t for t in tasks if not t.kind.chore and not grid.homes.get(t.model)]
    if not homeless:
        return
    now_ms = grid.snapshot.taken_at_ms
    for model in sorted({task.model for task in homeless}):
        theirs = [task for task in homeless if task.model == model]
        count = grid.queue(queue).depth if len(theirs) == len(tasks) else len(theirs)
        yield Finding(
            NO_HOME,
            queue,
            f"{counted(count, 'task')} in {queue} for {model}, which no worker can serve"
            f"{_unwanted(model, grid)}",
            "; ".join(
                (
                    f"the oldest has waited for {_waited_s(theirs, now_ms):.1f} s",
                    *_why_none(model, grid, limits),
                    _last_home(model, grid),
                )
            ),
            spof(model),
            _ids(theirs),
        )
    behind = [task for task in tasks[tasks.index(homeless[0]) :] if task not in homeless]
    if behind:
        yield Finding(
            BEHIND,
            queue,
            f"{counted(len(behind), 'task')} in {queue} behind {homeless[0].id}, which has no home",
            f"the oldest has waited for {_waited_s(behind, now_ms):.1f} s",
            REAP,
            _ids(behind),
        )


def _unclaimed(
    queue: Queue, tasks: tuple[Task, ...], grid: Grid, limits: Limits
) -> Iterator[Finding]:
    """Only where the queue itself has stood still for so long: a head that is old and has just
    been moved here, or in a queue that is being served, is about to be claimed."""
    now_ms, active_ms = grid.snapshot.taken_at_ms, grid.queue(queue).active_ms
    old = [
        task
        for task in tasks[:1]
        if now_ms - max(task.queued_at_ms or now_ms, active_ms) > limits.stuck_after_s * 1000
    ]
    for head in old:
        free = [each.worker for each in takers(head, grid, limits) if each.now]
        if free:
            workers = [grid.workers[name] for name in free]
            polled = (
                f"{worker.id} has {worker.free} of {worker.slots} slots free, "
                f"{poll_evidence(worker, now_ms)}"
                for worker in workers[:_TOLD]
            )
            yield Finding(
                UNCLAIMED,
                queue,
                f"the head of {queue} is not claimed although a slot is free for it",
                "; ".join((f"{head.id} has waited for {_waited_s([head], now_ms):.1f} s", *polled)),
                REAP,
                _ids(tasks),
            )


def _overdue(task: Task, at_ms: int, grid: Grid, limits: Limits) -> Finding | None:
    snapshot = grid.snapshot
    late_s = (snapshot.taken_at_ms - at_ms) / 1000
    if snapshot.taken_at_ms < snapshot.reaper.hold_until_ms or late_s <= limits.pass_window_s:
        return None
    words = {
        State.WAITING: "should have come back from its back-off",
        State.PENDING: "has waited for longer than it may",
    }
    if task.state not in words:
        return None
    last_ms = snapshot.reaper.last_pass_ms
    idle = (
        f"the reaper's last pass was {(snapshot.taken_at_ms - last_ms) / 1000:.1f} s ago"
        if last_ms
        else "no reaper has ever run here"
    )
    return Finding(
        OVERDUE,
        task.id,
        f"task {task.id} {words[task.state]}, and nobody has looked at it",
        f"due {late_s:.1f} s ago; {idle}",
        REAP,
        (task.id,),
    )


def _why_none(model: str, grid: Grid, limits: Limits) -> list[str]:
    at = Moment.of(grid.snapshot, limits)
    having = [worker for worker in grid.snapshot.workers if worker.offer(model)]
    told = [f"{worker.id}: {why_no_home(worker, model, at)}" for worker in having[:_TOLD]]
    return told or ["no worker has it"]


def _unwanted(model: str, grid: Grid) -> str:
    """What to do where nobody will bring the model back; a dead worker that has it may."""
    if any(worker.offer(model) for worker in grid.snapshot.workers):
        return ""
    return f"; where nobody wants it any more: {cancel_all(model)}, then {unlearn(model)}"


def _last_home(model: str, grid: Grid) -> str:
    last_ms = grid.snapshot.model_homes.get(model)
    if not last_ms:
        return "it never had a home"
    return f"last home {max(0, grid.snapshot.taken_at_ms - last_ms) / 1000:.0f} s ago"


def _waited_s(tasks: Iterable[Task], now_ms: int) -> float:
    return max((now_ms - (task.queued_at_ms or now_ms)) / 1000 for task in tasks)


def _ids(tasks: Iterable[Task]) -> tuple[TaskId, ...]:
    return tuple(task.id for task in tasks)[:NAMED]
