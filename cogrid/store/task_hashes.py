"""Tasks as their hashes tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.task import Band, Kind, State, Task
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, good, hash_of
from cogrid.store.task_lists import read_queued


def read_tasks(keys: Keys, ids: Iterable[TaskId]) -> Reading[dict[TaskId, Task | None]]:
    """The hashes of these tasks in one round trip; None where there is none."""
    wanted = tuple(ids)
    if not wanted:
        return {}
    replies = yield [("HGETALL", keys.task(task)) for task in wanted]
    return {
        task: task_of(task, hash_of(certain(reply)))
        for task, reply in zip(wanted, replies, strict=True)
    }


def read_waiting(
    keys: Keys, queues: Iterable[Queue], most: int
) -> Reading[dict[Queue, tuple[Task, ...]]]:
    """The first tasks of each queue, in the order in which they will be served."""
    ids = yield from read_queued(keys, tuple(queues), most)
    hashes = yield from read_tasks(keys, (task for tasks in ids.values() for task in tasks))
    return {
        queue: tuple(task for one in tasks if (task := hashes[one])) for queue, tasks in ids.items()
    }


def read_place(keys: Keys, task: TaskId) -> Reading[tuple[Task | None, int]]:
    """A task and its place in its queue (1 is next, 0: in none)."""
    found = (yield from read_tasks(keys, (task,)))[task]
    if found is None or found.state is not State.PENDING:
        return found, 0
    (rank,) = yield [("ZRANK", keys.queue(found.queue), task)]
    return found, 0 if good(rank) is None else int(rank) + 1


def task_of(task: TaskId, fields: Mapping[str, str]) -> Task | None:
    """A task from its hash; None for an empty one."""
    if "state" not in fields:
        return None

    def stamp(name: str) -> int | None:
        return int(fields[name]) if fields.get(name) else None

    return Task(
        id=task,
        kind=Kind(fields.get("kind", "chat")),
        state=State(fields["state"]),
        queue=Queue(fields.get("queue", "")),
        model=fields.get("model", ""),
        domain=fields.get("domain", ""),
        user=fields.get("user", ""),
        band=Band(int(fields.get("band", "0"))),
        attempts=int(fields.get("attempts", "0")),
        recoveries=int(fields.get("recoveries", "0")),
        run=int(fields.get("run", "0")),
        n=int(fields.get("n", "0")),
        token=Token(fields["token"]) if fields.get("token") else None,
        worker=WorkerId(fields["worker"]) if fields.get("worker") else None,
        avoid=WorkerId(fields["avoid"]) if fields.get("avoid") else None,
        solo=fields.get("solo") == "1",
        streamed=fields.get("streamed") == "1",
        reason=fields.get("reason", ""),
        submitted_at_ms=stamp("submitted_at") or 0,
        queued_at_ms=stamp("queued_at"),
        claimed_at_ms=stamp("claimed_at"),
        first_at_ms=stamp("first_at"),
        finished_at_ms=stamp("finished_at"),
        error=fields.get("error", ""),
        needs=tuple(fields.get("needs", "").split()),
    )
