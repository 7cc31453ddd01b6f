"""What the pure decisions on the way of a request cost: routing and the domain of a prompt."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from benchmarks.table import Row, row
from cogrid.model.limits import Limits
from cogrid.model.names import Queue, WorkerId
from cogrid.model.snapshot import QueueDepth, Snapshot
from cogrid.model.worker import Offer, Worker, WorkerState
from cogrid.rules.domain import Domain, Prompt, classify
from cogrid.rules.grid import Grid
from cogrid.rules.request import Ask
from cogrid.rules.route import route
from cogrid.rules.routing import Routing

NOW_MS = 1_780_800_000_000
TIMES = 100
ROUTE_MS = 0.3
DOMAIN_MS = 5.0
"""Section 7 of the design: a domain is found in under 5 ms, whatever the prompt."""


def measure(repeats: int) -> list[Row]:
    """Milliseconds of one routing on 20 workers of 20 models, and of one classification of the
    worst of five prompts of 100 kB."""
    routing = [_ms(_routing()) for _ in range(repeats)]
    domain = [max(_ms(one) for one in _prompts()) for _ in range(repeats)]
    return [
        row("route, 20 workers x 20 models", routing, "ms", ROUTE_MS, most=True),
        row("domain of a prompt of 100 kB", domain, "ms", DOMAIN_MS, most=True),
    ]


def _ms(once: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(TIMES):
        once()
    return (time.perf_counter() - started) / TIMES * 1000


def _routing() -> Callable[[], object]:
    limits, names = Limits(), [f"model{n}:1b" for n in range(20)]
    workers = tuple(_worker(n, names) for n in range(20))
    queues = tuple(QueueDepth(Queue(f"tasks:gpu:shared:{m}"), 3, gap_s=0.1) for m in names)
    grid = Grid.of(Snapshot(NOW_MS, workers, queues), limits)
    ask = Ask("model7:1b", prompt=Prompt("hello there"), affinity="w3", needs=("tools",))
    return partial(route, ask, grid, Routing(), limits)


def _worker(number: int, models: list[str]) -> Worker:
    return Worker(
        WorkerId(f"w{number}"), True, NOW_MS + 18_000, pool=("gpu", "cpu")[number % 2], slots=1,
        state=WorkerState.READY, polled_at_ms=NOW_MS, offers=tuple(Offer(m) for m in models),
    )  # fmt: skip


def _prompts() -> list[Callable[[], object]]:
    rules = (
        Domain("words", words=tuple(f"word{n}" for n in range(100))),
        Domain("pattern", patterns=(r"foo.*bar", r"\bselect\b.{1,200}\bfrom\b")),
        Domain("thai", languages=("th",)),
    )
    units = ("the quick brown fox ", "東京の天気を教えて。", "a", "ﷺ", "\n")
    prompts = [Prompt(unit * (100_000 // len(unit)), 100_000) for unit in units]
    return [partial(classify, prompt, rules) for prompt in prompts]
