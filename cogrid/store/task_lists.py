"""Which tasks there are: open, ended, dead. Bounded: so many are looked at, and it is said when
there are more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from cogrid.model.names import Queue, TaskId
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, scored
from cogrid.store.script import text

LOOKED_AT = 10_000
"""Tasks of one list that are looked at, about half a second of reading."""


class Listing(StrEnum):
    """The three lists in which every task stands once."""

    OPEN = "open"
    ENDED = "ended"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Listed:
    """tasks: (id, score in its list in Redis ms, None for never). total: how many the list has;
    more than ``tasks`` where it was cut short."""

    tasks: tuple[tuple[TaskId, int | None], ...]
    total: int

    @property
    def cut(self) -> bool:
        """True where there are more than were read."""
        return self.total > len(self.tasks)


def read_listed(keys: Keys, which: Listing, most: int = LOOKED_AT) -> Reading[Listed]:
    """A list: the open ones by when they are due, the others by when they are dropped, the latest
    first."""
    index = {Listing.OPEN: keys.due, Listing.ENDED: keys.finished, Listing.DEAD: keys.dead}[which]
    latest = () if which is Listing.OPEN else ("REV",)
    found, total = yield [
        ("ZRANGE", index, 0, most - 1, *latest, "WITHSCORES"),
        ("ZCARD", index),
    ]
    tasks = ((TaskId(task), _instant(score)) for task, score in scored(certain(found)))
    return Listed(tuple(tasks), int(certain(total)))


def read_queued(
    keys: Keys, queues: tuple[Queue, ...], most: int
) -> Reading[dict[Queue, tuple[TaskId, ...]]]:
    """The first ids of each queue, in the order in which they will be served."""
    return (yield from read_heads(keys, dict.fromkeys(queues, most)))


def read_heads(keys: Keys, asked: Mapping[Queue, int]) -> Reading[dict[Queue, tuple[TaskId, ...]]]:
    """The same with a number for each queue; one of which none is asked is left out."""
    wanted = {queue: most for queue, most in asked.items() if most}
    if not wanted:
        return {}
    replies = yield [("ZRANGE", keys.queue(queue), 0, most - 1) for queue, most in wanted.items()]
    return {
        queue: tuple(TaskId(text(task)) for task in certain(reply))
        for queue, reply in zip(wanted, replies, strict=True)
    }


def read_body_sizes(keys: Keys, tasks: tuple[TaskId, ...]) -> Reading[dict[TaskId, int]]:
    """Bytes of the requests that are kept; 0 where one is gone."""
    if not tasks:
        return {}
    replies = yield [("STRLEN", keys.body(task)) for task in tasks]
    return {task: int(certain(reply)) for task, reply in zip(tasks, replies, strict=True)}


def _instant(score: float) -> int | None:
    return int(score) if isfinite(score) else None
