"""Whatever is started last, and in whatever order: soon after, the grid answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cogrid.engine.fault import FaultEngine
from tests.conftest import needs
from tests.e2e.chat import Chat, Ending
from tests.e2e.daemon import Daemon
from tests.e2e.grid import Grid, said
from tests.e2e.rounds import PROOF_LIMIT_S
from tests.servers import VALKEY9

pytestmark = pytest.mark.e2e

PARTS = ("redis", "engine", "coordinator", "worker", "reaper")
SEED = 10
ANSWER_S = 30.0
START_S = 20.0
"""What starting five processes on a busy machine takes, whatever the limits are."""
AT_ONCE = 5
MOST_LINES = 12
"""Of one daemon's log over a whole start, but for the requests that we asked."""

Order = tuple[str, ...]


def last_in_turn() -> list[Order]:
    """Each part last once, the others as they stand."""
    return [(*(part for part in PARTS if part != last), last) for last in PARTS]


def by_chance(count: int) -> list[Order]:
    """Orders by chance, the same in every run."""
    chance = random.Random(SEED)
    return [tuple(chance.sample(PARTS, len(PARTS))) for _ in range(count)]


class Starting:
    """One grid, of which nothing runs at first."""

    def __init__(self, grid: Grid, engine: FaultEngine) -> None:
        self.grid = grid
        self.engine = engine
        self._daemons: list[Daemon] = []
        self._up: set[str] = set()

    async def start(self, part: str) -> None:
        """Start one part, and let all that run say what they miss."""
        grid = self.grid
        starts: dict[str, Callable[[], Daemon | Awaitable[None]]] = {
            "redis": lambda: asyncio.to_thread(grid.server.start),
            "engine": self.engine.start,
            "coordinator": grid.coordinator,
            "worker": lambda: grid.worker("esxi", self.engine),
            "reaper": grid.reaper,
        }
        started = starts[part]()
        if isinstance(started, Daemon):
            self._daemons.append(started)
            await started.says("[start]", within_s=START_S)
        else:
            await started
        self._up.add(part)

    async def complain(self) -> None:
        """Everybody has noticed what is missing, and said so."""
        for daemon in self._daemons:
            missing = "redis" if daemon.name != "esxi" or "engine" in self._up else "engine"
            if missing not in self._up:
                words = "tried again until it is there" if missing == "engine" else "reached"
                await daemon.says(words, within_s=START_S)


async def _answers_after(grid: Grid, order: Order) -> float:
    """Seconds from the last start to the end of the first answer."""
    print("order:", ", ".join(order))
    engine = await grid.engine()
    await engine.stop()
    await asyncio.to_thread(grid.server.stop)
    starting = Starting(grid, engine)
    for part in order[:-1]:
        await starting.start(part)
    await starting.complain()
    began_s = time.monotonic()
    await starting.start(order[-1])
    chat = await _first_accepted(grid, began_s + ANSWER_S * grid.scale + START_S)
    assert await chat.ended(ANSWER_S * grid.scale + START_S) is Ending.ANSWER
    assert chat.text == said(8)
    took_s = chat.ended_s - began_s
    for daemon in grid.daemons.values():
        lines = [line for line in daemon.log.splitlines() if " POST /v1/" not in line]
        assert len(lines) <= MOST_LINES, "\n".join((daemon.name, *lines))
        assert "Traceback" not in daemon.log, daemon.tail
    edges = grid.edges()
    assert not {"reaped", "moved", "retried", "handed_back"} & edges.keys(), edges
    assert edges["claimed"] == edges["done"], edges
    return took_s


async def _first_accepted(grid: Grid, deadline_s: float) -> Chat:
    """Asks until a request is let in. One that is let in must be answered, whatever is missing."""
    while True:
        chat = grid.chat()
        if await chat.let_in(within_s=10):
            return chat
        assert time.monotonic() < deadline_s, f"none was let in: {chat.status} {chat.error}"


async def _play(directory: Path, scale: float, orders: list[Order]) -> list[float]:
    """Several grids at the same time."""
    needs(VALKEY9)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, order: Order) -> float:
        async with room, Grid(directory / f"grid-{number}", scale) as grid:
            return await _answers_after(grid, order)

    return await asyncio.gather(*(one(number, order) for number, order in enumerate(orders)))


async def test_each_last_in_turn(tmp_path: Path, scale: float) -> None:
    """The last of the five is Redis, the engine, the coordinator, the worker, the reaper."""
    await _play(tmp_path, scale, last_in_turn())


async def test_by_chance(tmp_path: Path, scale: float) -> None:
    """Any order."""
    await _play(tmp_path, scale, by_chance(5))


@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_at_defaults(tmp_path: Path, scale: float) -> None:
    """Each last in turn and ten by chance, each answered within 30 s of the last start."""
    orders = [*last_in_turn(), *by_chance(10)]
    took_s = await _play(tmp_path, scale, orders)
    for order, seconds in zip(orders, took_s, strict=True):
        print(f"{seconds:5.1f} s  {', '.join(order)}")
    assert max(took_s) < ANSWER_S
