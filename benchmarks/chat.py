"""Chats through the whole grid beside the same chats straight to the engine, in turns.

Each repeat measures the engine directly, then each way to it, so that what else the machine does
hits all of them alike; a figure is the ratio or the difference within one repeat.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from benchmarks.load import Asking, Loaded
from benchmarks.process import module
from benchmarks.table import Row, number, row

GOAL_ADDED_MS = 3.0
GOAL_PER_S = 700.0
GOAL_RATIO = 0.2
GOAL_PACED_RATIO = 0.98
DIRECT = "direct"
RUN_S = 600.0


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of asking. requests: so many in a repeat, at scale 1."""

    name: str
    clients: int
    requests: int
    tokens: int
    streamed: bool
    model: str = "mock"


ONE = Work("one at a time", 1, 300, 16, False)
MANY = Work("32 at a time", 32, 3000, 16, False)
FIRST = Work("first token", 1, 200, 16, True)
STREAMS = Work("16 streams", 16, 320, 128, True)
PACED = Work("16 streams, 20 ms", 16, 32, 64, True, "mock-20ms")
WORKS = (ONE, MANY, FIRST, STREAMS, PACED)

Repeat = dict[tuple[str, str], Loaded]
"""(kind of asking, way) -> what came of it."""


def measure(ways: Mapping[str, str], repeats: int, scale: float = 1.0) -> list[Repeat]:
    """Asks in every way (name -> address), in turns. RuntimeError for a single wrong answer."""
    for name in ways:
        for work in (MANY, STREAMS):
            _run(name, ways[name], work, scale / 10)  # connections, caches, lazy imports
    return [
        {
            (work.name, name): _run(name, url, work, scale)
            for work in WORKS
            for name, url in ways.items()
        }
        for _ in range(repeats)
    ]


def rows(repeats: list[Repeat], way: str = "cogrid", goals: bool = True) -> list[Row]:
    """The rows of one way beside the direct one."""

    def values(work: Work, name: str, field: str) -> list[float]:
        return [getattr(repeat[work.name, name], field) for repeat in repeats]

    def pairs(work: Work, field: str) -> list[tuple[float, float]]:
        return list(zip(values(work, way, field), values(work, DIRECT, field), strict=True))

    def added(work: Work, field: str, goal: float | None) -> Row:
        note = f"direct {number(min(values(work, DIRECT, field)))} ms"
        differences = [mine - direct for mine, direct in pairs(work, field)]
        return row(f"{way}: {work.name}, added p50", differences, "ms", goal, True, note)

    def ratio(work: Work, goal: float) -> Row:
        note = f"{number(max(values(work, way, 'tokens_per_s')))} tokens/s"
        ratios = [mine / direct for mine, direct in pairs(work, "tokens_per_s")]
        return row(f"{way}: {work.name}", ratios, "of direct", goal if goals else None, note=note)

    p99 = f"p99 {number(min(values(MANY, way, 'p99_ms')))} ms"
    return [
        added(ONE, "p50_ms", GOAL_ADDED_MS if goals else None),
        added(FIRST, "first_p50_ms", None),
        row(
            f"{way}: {MANY.name}",
            values(MANY, way, "per_s"),
            "requests/s",
            GOAL_PER_S if goals else None,
            note=p99,
        ),
        ratio(STREAMS, GOAL_RATIO),
        ratio(PACED, GOAL_PACED_RATIO),
    ]


def _run(way: str, url: str, work: Work, scale: float) -> Loaded:
    """One run of the load generator, in a process of its own."""
    requests = max(work.clients, round(work.requests * scale))
    tokens = max(4, round(work.tokens * min(1.0, 10 * scale)))  # fewer only where it is for show
    asking = Asking(url, work.clients, requests, tokens, work.streamed, work.model)
    words = module("benchmarks.load", msgspec.json.encode(asking).decode())
    done = subprocess.run(words, check=True, capture_output=True, timeout=RUN_S)
    loaded = msgspec.json.decode(done.stdout, type=Loaded)
    if loaded.errors:
        raise RuntimeError(f"{way}, {work.name}: {loaded.errors} errors; {loaded.trouble}")
    return loaded
