"""Redis goes away, comes back, comes back empty or older, or refuses to write: all by itself the
grid is well again, and healthy workers lose nothing."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cogrid.engine.fault import FaultEngine
from tests.conftest import needs
from tests.e2e.chat import Chat, Ending
from tests.e2e.events import Log
from tests.e2e.grid import Grid, open_requests, said
from tests.e2e.laws import open_work, violations
from tests.e2e.rounds import PROOF_LIMIT_S
from tests.servers import VALKEY9, free_port
from tests.wait import until_async

pytestmark = pytest.mark.e2e

TOKENS = 90
TOKEN_S = 1.0
"""So that answers begin before an outage of a minute and end behind it."""
OUTAGE_S = 60.0
RESTARTS, RESTARTS_S, ASKED = 5, 10.0, 20
AGAIN_S = 120.0
"""After an outage, until everything has ended: a whole answer, a lease, a hold."""
SLACK_S = 20.0
"""For a busy machine, whatever the limits are."""
AT_ONCE = 3
LINES = 4
"""A daemon may log in one outage: it is lost, it is back, and what follows from that."""
REQUEST = re.compile(" (GET|POST) /")
RECOVERIES = frozenset({"reaped", "moved", "retried", "handed_back", "claimed_again", "expired"})


@dataclass(slots=True)
class Busy:
    """Two workers of two slots, all of them taken, and more that waits."""

    grid: Grid
    engines: tuple[FaultEngine, FaultEngine]
    running: tuple[Chat, ...]
    waiting: tuple[Chat, ...]
    logged: dict[str, int]

    @property
    def chats(self) -> tuple[Chat, ...]:
        return (*self.running, *self.waiting)

    def lines(self) -> dict[str, list[str]]:
        """What each daemon has logged since then, but for requests."""
        return {
            name: [line for line in _lines(self.grid, name)[count:] if not REQUEST.search(line)]
            for name, count in self.logged.items()
        }

    async def all_answered(self) -> None:
        """Each has its whole answer, from the worker that began it."""
        for chat in self.chats:
            assert await chat.ended(AGAIN_S * self.grid.scale + SLACK_S) is Ending.ANSWER, (
                chat.error
            )
            assert chat.text == said(TOKENS if chat in self.running else 8)
            assert chat.ran["recoveries"] == 0

    def none_recovered(self) -> None:
        """Nobody healthy was taken for anything else."""
        edges = self.grid.edges()
        assert not RECOVERIES & edges.keys(), edges

    def few_lines(self, outages: int = 1) -> None:
        """One line a phase."""
        for name, lines in self.lines().items():
            assert len(lines) <= LINES * outages, "\n".join((name, *lines))
            assert not any("Traceback" in line for line in lines), "\n".join(lines)


def _lines(grid: Grid, name: str) -> list[str]:
    return grid.daemons[name].log.splitlines()


@asynccontextmanager
async def busy(directory: Path, scale: float) -> AsyncIterator[Busy]:
    """A grid at work: four answers under way, in both dialects, streamed and not, and four behind
    them in every kind of queue."""
    needs(VALKEY9)
    async with Grid(directory, scale, persist=True) as grid:
        grid.coordinator()
        grid.reaper(patient=True)
        pace: dict[str, Any] = {"tokens": TOKENS, "delay_s": TOKEN_S * scale}
        engines = await grid.engine(**pace), await grid.engine(**pace)
        grid.worker("esxi", engines[0], slots=2)
        grid.worker("ai-core", engines[1], slots=2)
        await grid.up("esxi", "ai-core", within_s=20 * scale + SLACK_S)
        running = tuple(
            grid.chat(worker=worker, ollama=ollama, stream=stream, **_length(ollama, TOKENS))
            for worker in ("esxi", "ai-core")
            for ollama, stream in ((False, True), (worker == "esxi", worker == "esxi"))
        )
        await until_async(lambda: _runs(engines, 4, 3), SLACK_S, "four answers to be under way")
        waiting = (
            grid.chat(worker="esxi", max_tokens=8),
            grid.chat(stream=False, max_tokens=8),
            grid.chat(ollama=True, **_length(True, 8)),
            grid.chat(worker="ai-core", status=True, max_tokens=8),
        )
        await until_async(lambda: len(grid.events("submitted")) == 8, SLACK_S)
        logged = {name: len(_lines(grid, name)) for name in grid.daemons}
        yield Busy(grid, engines, running, waiting, logged)


def _length(ollama: bool, tokens: int) -> dict[str, Any]:
    return {"options": {"num_predict": tokens}} if ollama else {"max_tokens": tokens}


def _runs(engines: tuple[FaultEngine, ...], count: int, tokens: int) -> bool:
    open_now = [record for engine in engines for record in open_requests(engine)]
    return len(open_now) == count and all(record.tokens >= tokens for record in open_now)


async def passes(seconds: float) -> None:
    """An outage is a length of time; there is nothing to wait for in it."""
    await asyncio.sleep(seconds)


async def asked_meanwhile(grid: Grid, over: asyncio.Event) -> list[Chat]:
    """Short requests, one after another, as long as it lasts."""
    asked: list[Chat] = []
    while not over.is_set():
        asked.append(grid.chat(stream=len(asked) % 2 == 0, max_tokens=8))
        await passes(RESTARTS_S * grid.scale / ASKED)
    return asked


async def restarted(directory: Path, scale: float) -> None:
    """Five times in ten seconds, by SIGTERM and by kill -9, while requests come in."""
    async with busy(directory, scale) as work:
        grid, over = work.grid, asyncio.Event()
        meanwhile = asyncio.create_task(asked_meanwhile(grid, over))
        began_s = time.monotonic()
        for number in range(1, RESTARTS + 1):
            await asyncio.to_thread(grid.server.restart, kill=number % 2 == 0)
            next_s = began_s + RESTARTS_S * scale * number / RESTARTS
            await passes(max(0.0, next_s - time.monotonic()))
        over.set()
        await work.all_answered()
        refused = 0
        for chat in await meanwhile:
            ending = await chat.ended(AGAIN_S * scale + SLACK_S)
            assert ending in (Ending.ANSWER, Ending.REFUSED), (ending, chat.error, chat.broke)
            refused += ending is Ending.REFUSED
            assert ending is Ending.REFUSED or chat.text == said(8)
        work.none_recovered()
        work.few_lines(RESTARTS)


async def emptied(directory: Path, scale: float) -> None:
    """FLUSHALL: every client gets an error, soon; the engines are let go; both workers are back by
    themselves, and the next request is answered."""
    async with busy(directory, scale) as work:
        grid = work.grid
        grid.redis.flushall()
        began_s = time.monotonic()
        for chat in work.chats:
            ending = await chat.ended(10 * scale + SLACK_S)
            assert ending is (Ending.ERROR if chat.stream else Ending.REFUSED), (ending, chat.broke)
            assert "is gone from Redis" in chat.error
            assert said(TOKENS).startswith(chat.text)
        left_s = began_s + 8 * scale + SLACK_S - time.monotonic()
        await until_async(
            lambda: grid.is_ready("esxi") and grid.is_ready("ai-core"), left_s, "both to be back"
        )
        again = grid.chat(max_tokens=8)
        assert await again.ended(10 * scale + SLACK_S) is Ending.ANSWER
        assert again.text == said(8)
        await until_async(lambda: not open_work(grid.redis), SLACK_S, "rest")
        await until_async(
            lambda: not any(open_requests(engine) for engine in work.engines), SLACK_S, "engines"
        )
        found = violations(grid.redis, Log(grid.store).read())
        assert not found, found
        work.few_lines()
        grid.rests = False  # its log of events begins in the middle of tasks


async def set_back(directory: Path, scale: float) -> None:
    """It comes back as it was some seconds ago, as after a failover: text that was acknowledged is
    sent again, and nobody is told anything twice."""
    async with busy(directory, scale) as work:
        grid = work.grid
        before = {chat.task: chat.tokens for chat in work.running}
        grid.redis.bgrewriteaof()
        await until_async(
            lambda: not grid.redis.info("persistence")["aof_rewrite_in_progress"], SLACK_S
        )
        kept = await asyncio.to_thread(_kept, grid.server.directory)
        for chat in work.running:
            if chat.stream:
                await chat.reaches(before[chat.task] + 10, SLACK_S)
        await asyncio.to_thread(grid.server.stop, kill=True)
        await asyncio.to_thread(_put_back, grid.server.directory, kept)
        await asyncio.to_thread(grid.server.start)
        await work.all_answered()
        work.none_recovered()
        work.few_lines()


def _kept(directory: Path | None) -> dict[Path, bytes]:
    assert directory is not None
    return {file: file.read_bytes() for file in (directory / "appendonlydir").iterdir()}


def _put_back(directory: Path | None, kept: dict[Path, bytes]) -> None:
    assert directory is not None
    for file in (directory / "appendonlydir").iterdir():
        file.unlink()
    for file, data in kept.items():
        file.write_bytes(data)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A way in which the server takes no writes. sentence: what a client is told."""

    begin: Callable[[Grid], object]
    end: Callable[[Grid], object]
    sentence: str


def _full_disk(grid: Grid) -> None:
    """A save that fails, on a server that is told to save."""
    assert grid.server.directory is not None
    (grid.server.directory / "dump.rdb").mkdir()
    grid.redis.config_set("save", "3600 1")
    grid.redis.bgsave()


def _empty_disk(grid: Grid) -> None:
    assert grid.server.directory is not None
    (grid.server.directory / "dump.rdb").rmdir()
    grid.redis.bgsave()


REFUSALS = {
    "read_only": Refusal(
        lambda grid: grid.redis.replicaof("127.0.0.1", free_port()),
        lambda grid: grid.redis.replicaof("NO", "ONE"),
        "is a read-only replica",
    ),
    "replicas": Refusal(
        lambda grid: grid.redis.config_set("min-replicas-to-write", 1),
        lambda grid: grid.redis.config_set("min-replicas-to-write", 0),
        "has too few replicas to accept writes",
    ),
    "memory": Refusal(
        lambda grid: grid.redis.config_set("maxmemory", 1),
        lambda grid: grid.redis.config_set("maxmemory", 0),
        "its memory is full",
    ),
    "disk": Refusal(
        _full_disk,
        _empty_disk,
        "it cannot save to disk",
    ),
    "frozen": Refusal(
        lambda grid: grid.server.pause(),
        lambda grid: grid.server.resume(),
        "cannot be reached",
    ),
}


async def refused(directory: Path, scale: float, refusal: Refusal) -> None:
    """No writes for a minute. Requests are turned away with the cause; answers that run go on to
    their end; nobody is taken for dead although nobody could renew for three leases."""
    async with busy(directory, scale) as work:
        grid = work.grid
        await asyncio.to_thread(refusal.begin, grid)
        turned_away = await _turned_away(grid)
        assert refusal.sentence in turned_away.error, turned_away.error
        assert turned_away.status == 503
        asked_s = time.monotonic()
        ready = await grid.http.get("/readyz")
        assert ready.status_code == 503, ready.text
        assert time.monotonic() - asked_s < 3, "a probe would have given up"
        await passes(OUTAGE_S * scale)
        assert all(chat.ending is Ending.BROKEN for chat in work.chats if chat.stream), (
            "ended early"
        )
        await asyncio.to_thread(refusal.end, grid)
        await work.all_answered()
        work.none_recovered()
        work.few_lines()


async def _turned_away(grid: Grid) -> Chat:
    """The first request that is refused."""
    deadline_s = time.monotonic() + SLACK_S
    while await (chat := grid.chat(max_tokens=8)).let_in(within_s=SLACK_S):
        assert time.monotonic() < deadline_s, "requests are let in"
    assert await chat.ended(SLACK_S) is Ending.REFUSED
    return chat


OUTAGES: dict[str, Callable[[Path, float], Awaitable[None]]] = {
    "restarted": restarted,
    "emptied": emptied,
    "set_back": set_back,
    **{
        name: lambda directory, scale, how=how: refused(directory, scale, how)  # type: ignore[misc]
        for name, how in REFUSALS.items()
    },
}


async def _play(directory: Path, scale: float, at_once: int) -> None:
    """Each in a grid of its own; most of it is waiting."""
    room = asyncio.Semaphore(at_once)

    async def one(name: str) -> None:
        try:
            async with room:
                await OUTAGES[name](directory / name, scale)
        except BaseException as error:
            error.add_note(f"in the outage {name}")
            raise

    await asyncio.gather(*(one(name) for name in OUTAGES))


@pytest.mark.timeout(300)
async def test_every_outage(tmp_path: Path, scale: float) -> None:
    """Scaled, a few at a time."""
    await _play(tmp_path, scale, AT_ONCE)


@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_at_defaults(tmp_path: Path, scale: float) -> None:
    """All of them at once."""
    await _play(tmp_path, scale, len(OUTAGES))
