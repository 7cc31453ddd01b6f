"""Everything breaks, by chance and at once, while people ask: three of each daemon, each with its
own way to Redis. Each accepted request has one answer, which is its own, or one error; when it is
over, nothing is left."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from cogrid.engine.fault import FaultEngine, Mode
from tests.conftest import needs
from tests.e2e.chat import Chat, Ending
from tests.e2e.daemon import Daemon
from tests.e2e.faults import Dice, Fault, of_daemon, of_engine, of_server, of_way
from tests.e2e.grid import Grid
from tests.e2e.rounds import PROOF_LIMIT_S
from tests.proxy import Proxy
from tests.servers import VALKEY9, free_port

pytestmark = pytest.mark.e2e

SEED = 2
SECONDS, PROOF_SECONDS, PROOF_GRIDS = 150.0, 600.0, 3
"""At the default limits; scaled as they are."""
BETWEEN_S = (0.0, 2.0, 6.0)
CLIENTS, WORDS = 6, 20
HANGS_S, SLACK_S = 500.0, 60.0
"""Queue limit, recoveries, holds; and a busy machine."""
LINES_A_FAULT = 4
STARTS_S = 15.0
"""A coordinator that was just started does not listen yet: it asks Redis for keys before, for eight
seconds at most."""


Way = Callable[[str, int], int]


@dataclass(frozen=True, slots=True)
class Reached:
    """An engine behind a proxy."""

    url: str


@dataclass(frozen=True, slots=True)
class Befell:
    """A fault that has been. Times are monotonic seconds."""

    part: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Asked:
    """words: its answer. coordinator: the one that was asked."""

    chat: Chat
    words: str
    coordinator: str

    def saw(self, fault: Befell) -> bool:
        """Its coordinator was killed, ended or frozen meanwhile."""
        chat = self.chat
        overlaps = fault.began_s <= chat.ended_s and chat.started_s <= fault.ended_s + STARTS_S
        return fault.part == self.coordinator and overlaps


class Chaos:
    """A grid in which every way can be cut and every process be killed."""

    def __init__(self, grid: Grid, seed: int) -> None:
        self.grid = grid
        self.dice = Dice(seed, grid.scale)
        self.asked: list[Asked] = []
        self.befell: list[Befell] = []
        self._faults: list[Fault] = of_server(grid)
        self._standing: set[str] = set()
        self._urls: dict[str, str] = {}
        self._over = asyncio.Event()

    async def begin(self, ways: AsyncExitStack) -> None:
        """Three coordinators, reapers and workers."""
        grid = self.grid

        def way(name: str, upstream: int) -> int:
            proxy = ways.enter_context(Proxy(upstream))
            self._faults += of_way(proxy, name)
            return proxy.port

        def redis(name: str) -> str:
            return f"redis://127.0.0.1:{way(name, grid.server.port)}/0"

        for number in range(3):
            port = free_port() if number else grid.port
            name = f"coordinator{number}"
            self._urls[name] = f"http://127.0.0.1:{port}"
            daemons = [grid.coordinator(name, port, redis(name))]
            daemons.append(grid.reaper(f"reaper{number}", redis(f"reaper{number}")))
            engine = await grid.engine(gpu=number == 2, delay_s=0.03)
            engine.set(Mode.ECHO)
            self._faults += of_engine(engine, f"w{number}")
            daemons.append(self._worker(f"w{number}", engine, way, redis(f"w{number}")))
            for daemon in daemons:
                self._faults += of_daemon(daemon)
        await grid.up("w0", "w1", "w2", within_s=SLACK_S)

    def _worker(self, name: str, engine: FaultEngine, way: Way, redis: str) -> Daemon:
        port = way(f"engine of {name}", int(engine.url.rpartition(":")[2]))
        pool = "gpu" if name == "w2" else "cpu"
        reached = Reached(f"http://127.0.0.1:{port}")
        return self.grid.worker(name, reached, pool=pool, slots=2, redis=redis)

    async def run(self, seconds: float) -> None:
        """Faults and requests for so long, then everything heals and every request ends."""
        clients = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]
        faults: set[asyncio.Task[None]] = set()
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            fault = self.dice.pick(self._faults)
            if fault.part not in self._standing:
                self._standing.add(fault.part)
                faults.add(asyncio.create_task(self._befall(fault)))
            await self.dice.lasts(*BETWEEN_S)
        await asyncio.gather(*faults)
        self._over.set()
        await asyncio.gather(*clients)

    async def _befall(self, fault: Fault) -> None:
        began_s = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} {fault.name} befalls {fault.part}")
        await fault.befall(self.dice)
        print(f"{time.strftime('%H:%M:%S')} {fault.name} leaves {fault.part}")
        self.befell.append(Befell(fault.part, began_s, time.monotonic()))
        self._standing.discard(fault.part)

    async def _client(self, number: int) -> None:
        chance = random.Random(number)
        while not self._over.is_set():
            words = " ".join(f"{len(self.asked)}-{word}" for word in range(WORDS))
            coordinator, url = chance.choice(list(self._urls.items()))
            chat = self.grid.chat(
                words,
                url=url,
                stream=chance.random() < 0.6,
                ollama=chance.random() < 0.5,
                status=chance.random() < 0.3,
                worker=chance.choice(("", "", "w0", "w1", "w2")),
                headers={"Idempotency-Key": words} if chance.random() < 0.2 else None,
            )
            self.asked.append(Asked(chat, words + " ", coordinator))
            if chance.random() < 0.15:
                await asyncio.sleep(chance.random())  # a person's patience
                await chat.leave()
            else:
                await chat.ended(HANGS_S * self.grid.scale + SLACK_S)
            if chat.ending is not Ending.ANSWER:
                await asyncio.sleep(chance.random())

    def check(self) -> None:
        """One end each, and no words of anybody else."""
        endings = Counter(asked.chat.ending for asked in self.asked)
        print(endings)
        for asked in self.asked:
            chat = asked.chat
            told = f"{chat.task} {chat.ending} {chat.error or chat.broke}: {chat.text!r}"
            assert asked.words.startswith(chat.text), f"somebody else's words: {told}"
            if chat.ending is Ending.ANSWER:
                assert chat.text == asked.words, told
            if chat.ending is Ending.BROKEN:
                # Only the end of its coordinator itself may leave a client without a word.
                assert any(asked.saw(fault) for fault in self.befell), told
        assert endings[Ending.ANSWER] > len(self.asked) / 4, "hardly anybody was answered"
        for name, daemon in self.grid.daemons.items():
            lines = [line for line in daemon.log.splitlines() if "WARNING [redis]" in line]
            most = LINES_A_FAULT * (1 + len(self.befell))
            assert len(lines) <= most, "\n".join((name, *lines))
            assert "Traceback" not in daemon.log, daemon.tail


async def _play(directory: Path, scale: float, seed: int, seconds: float) -> None:
    needs(VALKEY9)
    async with AsyncExitStack() as ways, Grid(directory, scale, persist=True) as grid:
        chaos = Chaos(grid, seed)
        await chaos.begin(ways)
        await chaos.run(seconds * scale)
        chaos.check()
        await grid.up("w0", "w1", "w2", within_s=60 * scale + SLACK_S)
        for worker in ("w0", "w1", "w2"):
            assert await grid.chat("all well", worker=worker).ended(SLACK_S) is Ending.ANSWER
        await grid.at_rest(100 * scale + SLACK_S)


async def test_everything_breaks(tmp_path: Path, scale: float) -> None:
    """Scaled to twice the tests' scale, so that the limits stand above a busy machine's noise."""
    await _play(tmp_path, 2 * scale, SEED, SECONDS)


@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_at_defaults(tmp_path: Path, scale: float) -> None:
    """Ten minutes, in several grids at once."""
    await asyncio.gather(
        *(
            _play(tmp_path / str(seed), scale, SEED + seed, PROOF_SECONDS)
            for seed in range(PROOF_GRIDS)
        )
    )
