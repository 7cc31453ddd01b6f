"""What is due: tasks that somebody must look at, clients whose lease has run out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from cogrid.model.names import TaskId
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, scores
from cogrid.store.script import text


@dataclass(frozen=True, slots=True)
class DueNow:
    """tasks: (id, since when it is due), the longest due first. orphans: tasks whose client's lease
    has run out. next_ms: when the next of either will be due, None where there is none."""

    tasks: tuple[tuple[TaskId, int], ...]
    orphans: tuple[TaskId, ...]
    next_ms: int | None


def read_due(keys: Keys, now_ms: int, most: int) -> Reading[DueNow]:
    """What a pass must look at: at most so many of each."""
    later = (f"({now_ms}", "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
    due, gone, next_due, next_gone = yield [
        ("ZRANGE", keys.due, "-inf", now_ms, "BYSCORE", "LIMIT", 0, most, "WITHSCORES"),
        ("ZRANGE", keys.clients, "-inf", now_ms, "BYSCORE", "LIMIT", 0, most),
        ("ZRANGE", keys.due, *later),
        ("ZRANGE", keys.clients, *later),
    ]
    ahead = [float(score) for reply in (next_due, next_gone) for score in certain(reply)[1::2]]
    return DueNow(
        tuple((TaskId(task), at_ms) for task, at_ms in scores(certain(due)).items()),
        tuple(TaskId(text(task)) for task in certain(gone)),
        min((int(score) for score in ahead if score != inf), default=None),
    )
