"""One task with everything that stands about it: its hash, its places, and its log's outline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from cogrid.model.chat import Entry
from cogrid.model.names import TaskId
from cogrid.model.record import Record, Story
from cogrid.model.task import State
from cogrid.store.keys import Keys
from cogrid.store.output import entry, order
from cogrid.store.reading import Reading, certain, good, hash_of
from cogrid.store.script import text
from cogrid.store.task_hashes import task_of

RUNS = 50
"""Runs of one task whose outline is read; attempts and recoveries allow for fewer than ten."""
TAIL = 10
"""Entries at the end of a run that are read: its last text, its reset, and moves behind that."""
A_TRIP = 500
"""Hashes in one round trip."""


def read_records(keys: Keys, ids: Iterable[TaskId]) -> Reading[dict[TaskId, Record | None]]:
    """The records of these tasks, so many a round trip; None where there is none."""
    wanted = tuple(dict.fromkeys(ids))
    found: dict[TaskId, Record | None] = {}
    for at in range(0, len(wanted), A_TRIP):
        some = wanted[at : at + A_TRIP]
        replies = yield [("HGETALL", keys.task(task)) for task in some]
        found |= {
            task: record_of(task, hash_of(certain(reply)))
            for task, reply in zip(some, replies, strict=True)
        }
    return found


def read_story(keys: Keys, task: TaskId) -> Reading[Story | None]:
    """Everything about one task; None where there is none."""
    replies = yield [
        ("HGETALL", keys.task(task)),
        ("ZSCORE", keys.due, task),
        ("ZSCORE", keys.clients, task),
        ("ZSCORE", keys.finished, task),
        ("ZSCORE", keys.dead, task),
    ]
    record = record_of(task, hash_of(certain(replies[0])))
    if record is None:
        return None
    place: Any = None
    if record.task.state is State.PENDING:
        (place,) = yield [("ZRANK", keys.queue(record.task.queue), task)]
    log = yield from read_outline(keys, task)
    due, client, finished, dead = map(_instant, replies[1:])
    rank = good(place)
    story = Story(record, 0 if rank is None else int(rank) + 1, due, client, finished or dead)
    return replace(story, log=log)


def read_outline(keys: Keys, task: TaskId) -> Reading[tuple[Entry, ...]]:
    """The log of a task, of each run only the first entry and the last ones: two commands a run,
    however much it has said."""
    found: dict[str, Entry] = {}
    start = "-"
    for _ in range(RUNS):
        (reply,) = yield [("XRANGE", keys.out(task), start, "+", "COUNT", 1)]
        first = certain(reply)
        if not first:
            break
        run, _n = order(text(first[0][0]))
        (reply,) = yield [("XREVRANGE", keys.out(task), run, run, "COUNT", TAIL)]
        entries = (entry(raw) for raw in (*first, *certain(reply)))
        found |= {each.id: each for each in entries}
        start = str(run + 1)
    return tuple(found[name] for name in sorted(found, key=order))


def record_of(task: TaskId, fields: Mapping[str, str]) -> Record | None:
    """A record from a task's hash; None for an empty one."""
    known = task_of(task, fields)
    if known is None:
        return None

    def number(name: str) -> int:
        said = fields.get(name, "")
        return int(said) if said.isdigit() else 0

    return Record(
        known,
        why=fields.get("why", ""),
        code=fields.get("code", ""),
        api_key=fields.get("key", ""),
        client=fields.get("client") == "1",
        followers=len(fields.get("followers", "").split()),
        on_close=fields.get("on_close", ""),
        size_bytes=number("size"),
        max_attempts=number("max_attempts"),
        max_recoveries=number("max_recoveries"),
        queue_timeout_ms=number("queue_timeout_ms"),
        keep_ms=number("keep_ms"),
    )


def _instant(score: Any) -> int | None:
    """A score as Redis ms; None where there is none, or where it is "never"."""
    said = good(score)
    at = float(said) if said is not None else float("inf")
    return int(at) if isfinite(at) else None
