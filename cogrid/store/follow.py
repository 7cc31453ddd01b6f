"""Reading what is new in many tasks' logs, and what a request that comes again must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.names import TaskId
from cogrid.model.task import Task
from cogrid.store.keys import Keys
from cogrid.store.output import after
from cogrid.store.reading import Reading, certain, good
from cogrid.store.script import text
from cogrid.store.task_hashes import read_place

LOOKED_THROUGH = 100
"""Steps of 1,000 entries that a search for a prefix takes at most."""


def read_new(
    keys: Keys, wanted: tuple[tuple[TaskId, str], ...], most: int = 500
) -> Reading[tuple[list[Any], ...]]:
    """Raw entries behind an id, at most so many each, for (task, last id) pairs; ``output.entry``
    reads one."""
    if not wanted:
        return ()
    replies = yield [
        ("XRANGE", keys.out(task), after(last), "+", "COUNT", most) for task, last in wanted
    ]
    return tuple(certain(reply) for reply in replies)


@dataclass(frozen=True, slots=True)
class Known:
    """A task as those who ask for it by its id see it. place: 1 is next, 0: in no queue. api_key:
    the id of the key that submitted it, "" without. fingerprint: of its request."""

    task: Task
    place: int
    api_key: str
    fingerprint: str


def read_known(keys: Keys, task: TaskId) -> Reading[Known | None]:
    """A task, or None where there is none."""
    found, place = yield from read_place(keys, task)
    if found is None:
        return None
    (reply,) = yield [("HMGET", keys.task(task), "key", "fingerprint")]
    key, fingerprint = certain(reply)
    return Known(found, place, text(key or b""), text(fingerprint or b""))


FULL_CHARS = 32
"""Of an id that cogrid made: no other begins with it, so there is nothing to search for."""


def find_tasks(keys: Keys, prefix: str, most: int = 2) -> Reading[tuple[TaskId, ...]]:
    """Ids that begin so, among open, ended and dead tasks; a bounded search of so many hits.
    prefix: letters and digits."""
    (exact,) = yield [("EXISTS", keys.task(prefix))]
    if good(exact) or len(prefix) >= FULL_CHARS:
        return (TaskId(prefix),) if good(exact) else ()
    found: set[str] = set()
    for index in (keys.due, keys.finished, keys.dead):
        cursor: Any = "0"
        for _ in range(LOOKED_THROUGH):
            (reply,) = yield [("ZSCAN", index, cursor, "MATCH", f"{prefix}*", "COUNT", 1000)]
            cursor, members = certain(reply)
            found.update(text(member) for member in members[::2])
            if len(found) >= most or text(cursor) == "0":
                break
            cursor = text(cursor)
        if len(found) >= most:
            break
    return tuple(TaskId(name) for name in sorted(found)[:most])


def touch_inbox(keys: Keys, name: str, ttl_ms: int = 60_000) -> Reading[None]:
    """Write to our own inbox, to prove that writing is possible; the reader ignores the hint."""
    replies = yield [
        ("ZADD", keys.inbox(name), "0", "ready"),
        ("PEXPIRE", keys.inbox(name), ttl_ms),
    ]
    for reply in replies:
        certain(reply)
