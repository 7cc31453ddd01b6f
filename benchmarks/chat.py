"""Chats through the whole grid beside the same chats straight to the engine, in turns.

Each repeat measures the engine directly, then each way to it, so that what else the machine does
hits all of them alike; a figure is the ratio or the difference within one repeat.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

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
PACED = Work("16 streams, 20 ms", 16, 16, 128, True, "mock-20ms")
WORKS = (ONE, MANY, FIRST, STREAMS, PACED)

Repeat = dict[tuple[str, str], Loaded]
"""(kind of asking, way) -> what came of it."""


def measure(ways: Mapping[str, str], repeats: int, scale: float = 1.0) -> list[Repeat]:
    """Asks in every way (name -> address), in turns. RuntimeError for a single wrong answer."""
    for name in ways:
        for work in (MANY, STREAMS):
            ask(name, ways[name], work, scale / 10)  # connections, caches, lazy imports
    return [
        {
            (work.name, name): ask(name, url, work, scale)
            for work in WORKS
            for name, url in ways.items()
        }
        for _ in range(repeats)
    ]


def rows(repeats: list[Repeat], way: str, goals: bool = True) -> list[Row]:
    """The rows of one way, each figure beside the direct one of its repeat."""
    seen = _Seen(repeats, way)
    many = seen.all(MANY, way, "per_s")
    p99 = f"p99 {number(median(seen.all(MANY, way, 'p99_ms')))} ms"
    made = [
        seen.added(ONE, "p50_ms", GOAL_ADDED_MS),
        seen.added(FIRST, "first_p50_ms", None),
        row(f"{way}: {MANY.name}", many, "requests/s", GOAL_PER_S, note=p99),
        seen.share(STREAMS, GOAL_RATIO),
        seen.share(PACED, GOAL_PACED_RATIO),
    ]
    return made if goals else [replace(one, goal=None) for one in made]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Figures of one way, and of the direct one beside it."""

    repeats: list[Repeat]
    way: str

    def all(self, work: Work, way: str, figure: str) -> list[float]:
        """That figure in every repeat."""
        return [getattr(repeat[work.name, way], figure) for repeat in self.repeats]

    def pairs(self, work: Work, figure: str) -> list[tuple[float, float]]:
        """(ours, direct) in every repeat."""
        return list(
            zip(self.all(work, self.way, figure), self.all(work, DIRECT, figure), strict=True)
        )

    def added(self, work: Work, figure: str, goal: float | None) -> Row:
        """How much later than direct."""
        later = [ours - direct for ours, direct in self.pairs(work, figure)]
        note = f"direct {number(median(self.all(work, DIRECT, figure)))} ms"
        return row(f"{self.way}: {work.name}, added p50", later, "ms", goal, True, note)

    def share(self, work: Work, goal: float) -> Row:
        """How much of the direct tokens per second."""
        shares = [ours / direct for ours, direct in self.pairs(work, "tokens_per_s")]
        note = f"{number(median(self.all(work, self.way, 'tokens_per_s')))} tokens/s"
        return row(f"{self.way}: {work.name}", shares, "of direct", goal, note=note)


def ask(way: str, url: str, work: Work, scale: float = 1.0) -> Loaded:
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
