"""What a pass does, decided from what it has read. The reaper acts on it, a dry run and a diagnosis
show it; so they cannot differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.snapshot import QueueDepth
from cogrid.model.task import Reason, State, Task
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
    Stamp,
    Tend,
)
from cogrid.rules.grid import Grid
from cogrid.rules.health import is_dead
from cogrid.rules.leave import is_homeless, is_lost, why_homeless, why_leave
from cogrid.rules.places import Places
from cogrid.rules.routing import Routing
from cogrid.rules.seen import Seen
from cogrid.rules.verdict import broken, expired, homeless, homeless_cure, orphaned, spent
from cogrid.rules.zombies import why_taken

HEADS = 100
"""Tasks of one queue that one pass looks at; the next pass sees the next ones."""
LOOKS = 1_000
"""Tasks of all queues that one pass looks at."""

_LOST_HOME = (Reason.DEAD_WORKER, Reason.GHOST_PENDING)


def look(grid: Grid, routing: Routing, limits: Limits) -> dict[Queue, int]:
    """Which queues a pass must look into, and at how many of their first tasks. On a grid that is
    well: none."""
    found: dict[Queue, int] = {}
    left = LOOKS
    for queue in grid.snapshot.queues:
        most = min(_worth(queue, grid, routing, limits), queue.depth, HEADS, left)
        if most:
            found[queue.name] = most
            left -= most
    return found


def plan(seen: Seen, routing: Routing, limits: Limits) -> tuple[Act, ...]:
    """Every act of this pass, in the order in which they are to be done: upkeep first, since a pass
    may have to stop for want of time."""
    places = Places(seen.grid, routing)
    return (
        Stamp(tuple(sorted(seen.grid.homes))),
        *_tends(seen),
        *_reaps(seen, places),
        *_dues(seen, places, limits),
        *_waits(seen, places, routing, limits),
        *_orphans(seen, limits),
        *_repairs(seen),
        *_forgets(seen),
    )


def _worth(queue: QueueDepth, grid: Grid, routing: Routing, limits: Limits) -> int:
    leave = why_leave(queue, grid, routing, limits)
    if leave:
        return HEADS if leave.most is None else leave.most
    return HEADS if is_lost(queue, grid, limits) else 0


def _reaps(seen: Seen, places: Places) -> Iterator[Reap]:
    due = dict(seen.due)
    held = (task for tasks in seen.held.values() for task in tasks)
    for task_id in dict.fromkeys((*due, *held)):
        task = seen.tasks.get(task_id)
        if task and task.state is State.RUNNING and task.token and task.worker:
            worker = seen.grid.workers.get(task.worker)
            at_ms = due.get(task_id)
            why = why_taken(task, at_ms, worker, seen.now_ms, seen.hold_until_ms)
            if why:
                yield _reap(task, *why, places)


def _reap(task: Task, reason: Reason, evidence: str, places: Places) -> Reap:
    assert task.token
    assert task.worker
    zombie = reason is Reason.ZOMBIE_RUNNING
    return Reap(
        task=task.id,
        token=task.token,
        worker=task.worker,
        queue=places.own(task, task.worker) if zombie else places.shared(task),
        reason=reason,
        evidence=evidence,
        broken=broken(task, reason),
        spent=spent(task, reason),
        homes=places.homes(task),
        said=task.kind.chore or (task.streamed and task.n > 0),
    )


def _dues(seen: Seen, places: Places, limits: Limits) -> Iterator[Promote | Expire | FailHomeless]:
    """Tasks whose back-off is over, or that have waited for as long as they may."""
    for task_id, _ in seen.due:
        task = seen.tasks.get(task_id)
        if task is None:
            continue
        if task.state is State.PENDING and seen.now_ms >= seen.hold_until_ms:
            yield Expire(task.id, expired(task, seen.now_ms))
        elif task.state is State.WAITING:
            yield _fail(task, seen, limits) or _promote(task, places)


def _promote(task: Task, places: Places) -> Promote:
    queue = places.own(task, task.avoid) if task.avoid else places.shared(task)
    return Promote(task.id, queue, places.homes(task))


def _waits(
    seen: Seen, places: Places, routing: Routing, limits: Limits
) -> Iterator[Move | FailHomeless]:
    """Tasks that wait in a queue where nobody, or nobody soon, will take them."""
    for name in seen.waiting:
        queue = seen.grid.queue(name)
        due = {task for task, _ in seen.due}
        tasks = [task for task in _waiting(name, seen) if task.id not in due]
        moves = tuple(_moves(queue, tasks, seen, places, routing, limits))
        moved = {move.task for move in moves}
        yield from moves
        rest = (task for task in tasks if task.id not in moved)
        yield from (fail for task in rest if (fail := _fail(task, seen, limits)))


def _moves(
    queue: QueueDepth,
    tasks: Iterable[Task],
    seen: Seen,
    places: Places,
    routing: Routing,
    limits: Limits,
) -> Iterator[Move]:
    leave = why_leave(queue, seen.grid, routing, limits)
    if leave is None:
        return
    for task in tasks:
        if seen.now_ms - (task.queued_at_ms or 0) < leave.after_s * 1000:
            continue
        to = places.to_free(task) if leave.to_free else places.shared(task)
        if to and to != queue.name:
            yield Move(
                task=task.id,
                worker=queue.worker,
                from_queue=queue.name,
                queue=to,
                reason=leave.reason,
                evidence=leave.evidence,
                homes=places.homes(task),
            )


def _fail(task: Task, seen: Seen, limits: Limits) -> FailHomeless | None:
    if task.kind.chore or not is_homeless(task.model, seen.grid, limits):
        return None
    waited_s = (seen.now_ms - (task.queued_at_ms or 0)) / 1000
    stamped = task.model in seen.grid.snapshot.model_homes
    if not stamped and waited_s <= limits.home_grace_s:
        return None
    said = task.reason if task.reason in _LOST_HOME else ""
    reason = why_homeless(task.model, said, seen.grid, limits)
    message, hint = homeless(task.model, reason), homeless_cure(task.model)
    return FailHomeless(task.id, task.model, reason, message, hint)


def _orphans(seen: Seen, limits: Limits) -> Iterator[CancelOrphan]:
    """Those that wait before those that run: whose run has ended takes the next that waits, and
    nobody listens to that either."""
    if seen.now_ms >= seen.hold_until_ms:
        message = orphaned(limits)
        orphans = sorted(seen.orphans, key=lambda task: _is_running(seen.tasks.get(task)))
        yield from (CancelOrphan(task, message) for task in orphans)


def _is_running(task: Task | None) -> bool:
    return task is not None and task.state is State.RUNNING


def _repairs(seen: Seen) -> Iterator[DropQueued | DropHeld]:
    """What scripts that were stopped half-way have left."""
    for name, queued in seen.waiting.items():
        confirmed = {task.id for task in _waiting(name, seen)}
        if lost := tuple(task for task in queued if task not in confirmed):
            yield DropQueued(name, lost)
    for worker, held in seen.held.items():
        if lost := tuple(task for task in held if not _runs(task, worker, seen)):
            yield DropHeld(worker, lost)


def _forgets(seen: Seen) -> Iterator[Forget]:
    """Names that nobody has any more: no lease, no hash, nothing that runs or waits."""
    if seen.now_ms < seen.hold_until_ms:
        return
    owners = {queue.worker for queue in seen.grid.snapshot.queues}
    for worker in seen.grid.snapshot.workers:
        gone = not worker.known and is_dead(worker, seen.now_ms)
        if gone and worker.id not in owners and not seen.held.get(worker.id):
            yield Forget(worker.id)


def _tends(seen: Seen) -> Iterator[Tend]:
    stale = tuple(task for task, _ in seen.due if _is_over(seen.tasks.get(task)))
    queues = tuple(queue.name for queue in seen.grid.snapshot.queues)
    yield Tend(queues[:HEADS], stale)
    yield from (Tend(queues[at : at + HEADS]) for at in range(HEADS, len(queues), HEADS))


def _waiting(queue: Queue, seen: Seen) -> list[Task]:
    """The tasks of a queue that confirm that they wait there, in its order."""
    found = (seen.tasks.get(task) for task in seen.waiting.get(queue, ()))
    return [task for task in found if task and _waits_in(task, queue)]


def _waits_in(task: Task, queue: Queue) -> bool:
    return task.state is State.PENDING and task.queue == queue


def _runs(task_id: TaskId, worker: WorkerId, seen: Seen) -> bool:
    task = seen.tasks.get(task_id)
    return task is not None and task.state is State.RUNNING and task.worker == worker


def _is_over(task: Task | None) -> bool:
    return task is None or task.state.terminal
