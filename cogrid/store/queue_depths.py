"""Queues: how much waits in each, who has turns in it, how fast it goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

from cogrid.model.names import Queue
from cogrid.model.snapshot import QueueDepth
from cogrid.store.keys import Keys
from cogrid.store.reading import Command, Reading, certain, good, hash_of
from cogrid.store.script import text

WAITING_MOST = 10_000


def ask_queues(keys: Keys, queues: Iterable[str]) -> list[Command]:
    return [
        command
        for queue in queues
        for command in (
            ("ZCARD", keys.queue(queue)),
            ("HMGET", keys.rate(queue), "mean_s", "var"),
            ("HGETALL", keys.turns(queue)),
        )
    ]


def depths_in(queues: dict[str, int], replies: list[Any]) -> tuple[QueueDepth, ...]:
    return tuple(
        _depth(Queue(queue), active, *replies[3 * i : 3 * i + 3])
        for i, (queue, active) in enumerate(queues.items())
    )


def _depth(queue: Queue, active_ms: int, depth: Any, rate: Any, turns: Any) -> QueueDepth:
    mean_s, variance = good(rate) or (None, None)
    return QueueDepth(
        queue,
        int(certain(depth)),
        active_ms=active_ms,
        gap_s=float(mean_s or 0),
        gap_sd_s=sqrt(max(0.0, float(variance or 0))),
        waiting=_turns_left(hash_of(good(turns, []))),
    )


def _turns_left(turns: Mapping[str, str]) -> dict[tuple[int, str], int]:
    """How many turns each user has before it; a user's last waiting task is not counted once it is
    its turn, since its entry is gone by then."""
    left: dict[tuple[int, str], int] = {}
    for name, turn in turns.items():
        kind, _, rest = name.partition(":")
        band, _, user = rest.partition(":")
        if kind == "f":
            left[int(band), user] = int(turn) - int(turns.get(f"v:{band}", "0")) - 1
    return left


def with_waits(keys: Keys, depths: tuple[QueueDepth, ...]) -> Reading[tuple[QueueDepth, ...]]:
    if not depths:
        return depths
    most = max(1, WAITING_MOST // len(depths))
    heads = yield [("ZRANGE", keys.queue(queue.name), 0, most - 1) for queue in depths]
    asked = [
        ("HGET", keys.task(text(task)), "queued_at") for head in heads for task in certain(head)
    ]
    stamps = iter((yield list(asked)) if asked else [])
    oldest = [
        min((int(stamp) for stamp in (next(stamps) for _ in head) if stamp), default=0)
        for head in heads
    ]
    return tuple(
        replace(queue, oldest_ms=since) for queue, since in zip(depths, oldest, strict=True)
    )
