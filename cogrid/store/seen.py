"""What a pass of the reaper reads: what is due, not what exists. A dry run and a diagnosis read the
same."""

from __future__ import annotations

from collections.abc import Iterable

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.snapshot import Server, Snapshot
from cogrid.model.task import Task
from cogrid.rules.grid import Grid
from cogrid.rules.health import is_dead
from cogrid.rules.plan import HEADS, look
from cogrid.rules.routing import Routing
from cogrid.rules.seen import Seen, as_wished
from cogrid.store.due import read_due
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, good
from cogrid.store.script import text
from cogrid.store.server_info import server_facts
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_tasks
from cogrid.store.task_lists import read_heads

DUE = 1_000
"""Due tasks that one pass reads; the next follows at once where there were more."""
WHOLE = 10_000
"""Tasks that are looked at where all that wait are."""
A_TRIP = 100
"""Hashes read in one round trip."""


def read_server() -> Reading[Server]:
    """Which server this is: its run and replication id."""
    (reply,) = yield [("INFO", "server", "replication")]
    return server_facts(good(reply))


def read_seen(
    keys: Keys, routing: Routing, limits: Limits, *, whole: bool = False
) -> Reading[Seen]:
    """Everything that ``rules.plan.plan`` decides on. whole: also what stands in queues and beside
    workers that are well."""
    snapshot = as_wished((yield from read_snapshot(keys, info=False, members=False)))
    grid = Grid.of(snapshot, limits)
    due = yield from read_due(keys, snapshot.taken_at_ms, DUE)
    held = yield from _read_held(keys, snapshot, whole)
    asked = _everything(snapshot) if whole else look(grid, routing, limits)
    waiting = yield from read_heads(keys, asked)
    tasks = yield from _read_tasks(
        keys,
        (task for task, _ in due.tasks),
        *held.values(),
        *waiting.values(),
    )
    return Seen(
        grid=grid,
        due=due.tasks,
        orphans=due.orphans,
        held=held,
        waiting=waiting,
        tasks=tasks,
        next_ms=_next_ms(snapshot, due.next_ms),
        cut=max(len(due.tasks), len(due.orphans)) >= DUE
        or any(len(tasks) >= HEADS for tasks in held.values())
        or (not whole and any(len(tasks) >= HEADS for tasks in waiting.values())),
    )


def _everything(snapshot: Snapshot) -> dict[Queue, int]:
    """All queues, up to so many tasks together."""
    found, left = dict[Queue, int](), WHOLE
    for queue in snapshot.queues:
        if most := min(queue.depth, left):
            found[queue.name] = most
            left -= most
    return found


def _read_held(
    keys: Keys, snapshot: Snapshot, whole: bool
) -> Reading[dict[WorkerId, tuple[TaskId, ...]]]:
    """What dead workers are said to run, some of it where it is much. whole: all workers."""
    now_ms = snapshot.taken_at_ms
    if now_ms < snapshot.reaper.hold_until_ms:
        return {}
    dead = [worker.id for worker in snapshot.workers if whole or is_dead(worker, now_ms)]
    if not dead:
        return {}
    replies = yield [
        ("SRANDMEMBER", key, HEADS)
        for worker in dead
        for key in (keys.worker_tasks(worker), keys.worker_chores(worker))
    ]
    both = zip(dead, replies[::2], replies[1::2], strict=True)
    held = {
        worker: tuple(TaskId(text(task)) for task in (*certain(tasks), *certain(chores)))
        for worker, tasks, chores in both
    }
    return {worker: tasks for worker, tasks in held.items() if tasks}


def _read_tasks(keys: Keys, *groups: Iterable[TaskId]) -> Reading[dict[TaskId, Task | None]]:
    ids = tuple(dict.fromkeys(task for group in groups for task in group))
    tasks: dict[TaskId, Task | None] = {}
    for at in range(0, len(ids), A_TRIP):
        tasks |= yield from read_tasks(keys, ids[at : at + A_TRIP])
    return tasks


def _next_ms(snapshot: Snapshot, due_ms: int | None) -> int | None:
    """The first of: something due, a lease that ends, the end of a hold."""
    leases = (worker.lease_until_ms for worker in snapshot.workers)
    times = (due_ms, snapshot.reaper.hold_until_ms, *leases)
    return min((at for at in times if at is not None and at > snapshot.taken_at_ms), default=None)
