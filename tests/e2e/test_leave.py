"""The client leaves: the engine's connection is closed and the slot is free within 2 s."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from cogrid.engine.fault import FaultEngine, Mode, Outcome
from tests.e2e.chat import Chat
from tests.e2e.grid import MODEL, Grid, chats
from tests.e2e.overlap import at_defaults
from tests.wait import until_async

GONE_S = 2.0
TIMES = 200
SPARE_FILES = 3
"""A connection that is just being opened or closed, at the moment of counting."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One worker with one slot, and its engine."""

    grid: Grid
    engine: FaultEngine

    def free(self) -> bool:
        """Its slot is free, and nothing was taken from it that it still holds."""
        held = ("worker:esxi:tasks", "worker:esxi:revoked")
        return not any(self.grid.redis.exists(key) for key in held)

    async def engine_has(self, count: int) -> None:
        """So many chats have ever come to the engine."""
        await until_async(lambda: len(chats(self.engine)) == count)


async def queued(bench: Bench, ollama: bool, stream: bool) -> None:
    """It waits behind another; it is out of the queue, and the engine never hears of it."""
    bench.engine.set(Mode.STALL, after=2)
    before = len(chats(bench.engine))
    first = bench.grid.chat()
    await first.reaches(2)
    second = bench.grid.chat(ollama=ollama, stream=stream)
    await until_async(lambda: bench.grid.depth(f"tasks:cpu:shared:{MODEL}") == 1)
    left_s = await _leave(second)
    await until_async(lambda: bench.grid.depth(f"tasks:cpu:shared:{MODEL}") == 0, GONE_S)
    assert time.monotonic() - left_s < GONE_S
    assert bench.grid.edges()["claimed"] == before + 1
    await _leave(first)
    await until_async(bench.free, GONE_S)
    assert len(chats(bench.engine)) == before + 1


async def loading(bench: Bench, ollama: bool, stream: bool) -> None:
    """The engine has not sent a byte, because it loads the model."""
    bench.engine.memory.loaded.clear()
    bench.engine.models[MODEL] = replace(bench.engine.models[MODEL], load_s=60)
    try:
        await _gone_from_the_engine(bench, ollama, stream, tokens=0)
    finally:
        bench.engine.models[MODEL] = replace(bench.engine.models[MODEL], load_s=0)


async def in_the_middle(bench: Bench, ollama: bool, stream: bool) -> None:
    """The engine is in the middle of its answer."""
    bench.engine.set(Mode.DELAY, seconds=0.05)
    bench.engine.set(Mode.TOKENS, after=1000)
    await _gone_from_the_engine(bench, ollama, stream, tokens=3)


async def silent(bench: Bench, ollama: bool, stream: bool) -> None:
    """The engine has stalled, so that nothing but the cancel could end it."""
    bench.engine.set(Mode.STALL, after=3)
    await _gone_from_the_engine(bench, ollama, stream, tokens=3)


Situation = Callable[[Bench, bool, bool], Awaitable[None]]
SITUATIONS: tuple[Situation, ...] = (queued, loading, in_the_middle, silent)


async def _leave(chat: Chat) -> float:
    """Returns when (monotonic)."""
    await chat.leave()
    return time.monotonic()


async def _gone_from_the_engine(bench: Bench, ollama: bool, stream: bool, tokens: int) -> None:
    count = len(chats(bench.engine))
    chat = bench.grid.chat(ollama=ollama, stream=stream)
    await bench.engine_has(count + 1)
    record = chats(bench.engine)[-1]
    await until_async(lambda: record.tokens >= tokens)
    if stream:
        await chat.reaches(tokens)
    left_s = await _leave(chat)
    await until_async(lambda: record.outcome is not Outcome.OPEN, GONE_S, "the engine to be let go")
    assert record.outcome is Outcome.ABORTED
    assert record.ended_s - left_s < GONE_S
    await until_async(bench.free, GONE_S - (time.monotonic() - left_s), "the slot to be free")


async def _bench(grid: Grid) -> Bench:
    await grid.begin()
    engine = await grid.engine()
    grid.worker("esxi", engine)
    await grid.up("esxi")
    return Bench(grid, engine)


@at_defaults
async def test_each_way_of_leaving(grid: Grid) -> None:
    """Queued, loading, mid-stream, stalled; streamed and not; both dialects."""
    bench = await _bench(grid)
    for situation in SITUATIONS:
        for ollama in (False, True):
            for stream in (True, False):
                await situation(bench, ollama, stream)
                bench.engine.switches.clear()
    asked = len(SITUATIONS) * 4 + 4
    edges = grid.edges()
    assert edges["submitted"] == edges["cancelled"] == asked
    assert not {"done", "failed", "reaped", "retried", "moved"} & edges.keys()
    # The worker is as good as new, and no model was blamed for what the clients did.
    assert await grid.chat().ended(10) == "answer"
    assert grid.health("esxi") == "healthy"


@at_defaults
async def test_two_hundred_leave_without_a_trace(grid: Grid) -> None:
    """Sockets, threads, connections to Redis, followers and keys are as before."""
    bench = await _bench(grid)
    rounds = [(s, ollama, stream) for s in SITUATIONS for ollama in (0, 1) for stream in (0, 1)]

    async def leave_once(number: int) -> None:
        situation, ollama, stream = rounds[number % len(rounds)]
        await situation(bench, bool(ollama), bool(stream))
        bench.engine.switches.clear()

    for number in range(len(rounds)):
        await leave_once(number)
    before = _held(grid)
    for number in range(TIMES):
        await leave_once(number)
    await until_async(lambda: _at_most(_held(grid), before), 10, f"to be as before: {before}")
    metrics = (await grid.http.get("/metrics")).text
    assert "cogrid_open_requests 0.0" in metrics
    assert grid.edges()["cancelled"] == grid.edges()["submitted"]
    assert not grid.redis.keys("task:*:body")


def _held(grid: Grid) -> dict[str, int]:
    """What a leak would make grow."""
    daemons = [grid.daemons[name] for name in ("coordinator", "esxi", "reaper")]
    return {
        **{f"files of {daemon.name}": daemon.open_files for daemon in daemons},
        **{f"threads of {daemon.name}": daemon.threads for daemon in daemons},
        "connections": int(grid.redis.info("clients")["connected_clients"]),
        "lasting keys": sum(grid.redis.ttl(key) == -1 for key in grid.redis.scan_iter(count=1000)),
    }


def _at_most(now: dict[str, int], before: dict[str, int]) -> bool:
    return all(now[name] <= count + SPARE_FILES for name, count in before.items())
