"""Redis restarts, is emptied, goes back in time, or loses a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from cogrid.engine.fault import FaultEngine, Mode, Switch
from cogrid.engine.find import find
from cogrid.model.chat import Delta
from cogrid.model.task import State
from cogrid.model.worker import WorkerState
from cogrid.worker.held import Held
from tests.proxy import Proxy
from tests.servers import Server
from tests.wait import until_async
from tests.worker.grid import Grid, Living, a_grid
from tests.worker.puppet import Puppet, Stream


async def test_an_answer_outlives_a_killed_server(
    own_server: Callable[..., Server],
    tmp_path: Path,
    scale: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = own_server(persist=True)
    grid = a_grid(server.url, tmp_path, scale, lease_s=20.0)
    async with FaultEngine(tokens=100) as fault:
        fault.switches.set(Switch(Mode.DELAY, seconds=0.01))
        engine = await find(fault.url)
        async with grid.living(engine):
            await grid.submit("t1")

            async def begun() -> bool:
                return len(await grid.text("t1")) > 20

            await until_async(begun, what="some text")
            await asyncio.to_thread(server.stop, True)
            running = fault.records.all[-1]
            tokens = running.tokens
            await until_async(lambda: running.tokens > tokens + 20, what="the engine to go on")
            await asyncio.to_thread(server.start)
            end = await grid.end("t1")
            text = await grid.text("t1")
            ids = [int(e.id.split("-")[1]) for e in await grid.log("t1")]
    grid.store.close()
    assert end.state is State.DONE
    assert len(text.split()) == 100
    assert ids[:-1] == list(range(len(ids) - 1))
    assert caplog.text.count("[redis] lost") == 1
    assert caplog.text.count("[redis] back") == 1


async def test_an_emptied_server_gets_it_registered_again(
    grid: Grid, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        probes = len(engine.probes)
        await grid.raw("FLUSHALL")
        await grid.worker_is(WorkerState.READY)
        await until_async(engine.streams[0].closed.is_set, timeout_s=2, what="the lost run to end")
        await grid.submit("t2")
        await engine.asked(2)
        engine.streams[1].done()
        assert (await grid.end("t2")).state is State.DONE
        assert len(engine.probes) == probes
    assert caplog.text.count("[register]") == 2


async def test_a_deleted_hash_ends_no_running_answer(grid: Grid) -> None:
    engine = Puppet(parallel=2)
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        before = await grid.worker()
        await grid.raw("DEL", "worker:esxi")
        after = await grid.worker_is(WorkerState.READY)
        engine.streams[0].say("still here")
        engine.streams[0].done()
        assert (await grid.end("t1")).state is State.DONE
        assert not living.task.done()
    assert before is not None
    assert after.instance == before.instance


async def test_a_server_that_fell_back_gets_the_text_again(grid: Grid) -> None:
    """Entries that were acknowledged are gone, as after a failover to a replica that lagged."""
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)

        async def text_is(want: str) -> bool:
            return await grid.text("t1") == want

        for word in "abcd":
            before = await grid.text("t1")
            engine.streams[0].say(word)
            await until_async(partial(text_is, before + word), what=word)
        claimed, first, *rest = await grid.log("t1")
        await _forget(grid, "t1", [claimed, first], rest)
        engine.streams[0].say("e")
        await until_async(partial(text_is, "abcde"), what="the text to be whole again")
        claimed, first, *rest = await grid.log("t1")
        await _forget(grid, "t1", [claimed, first], rest)
        engine.streams[0].done()
        assert (await grid.end("t1")).state is State.DONE
        assert await grid.text("t1") == "abcde"


async def _forget(grid: Grid, task: str, keep: list, rest: list) -> None:  # type: ignore[type-arg]
    """Makes the log end after ``keep``. A stream never takes back an id, so it is made anew."""
    key = grid.store.keys.out(task)
    raw = await grid.raw("XRANGE", key, "-", "+")
    await grid.raw("DEL", key)
    for entry_id, flat in raw[: len(keep)]:
        await grid.raw("XADD", key, entry_id, *flat)
    await grid.raw("HSET", grid.store.keys.task(task), "n", str(len(keep) - 1))
    assert rest


async def test_a_lost_reply_is_asked_for_again_and_nothing_runs_twice(
    server: Server, tmp_path: Path, scale: float
) -> None:
    """The server does what it was told, and the answer never arrives; for every call in turn."""
    with Proxy(str(server.socket_path)) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}/0"
        behind = a_grid(url, tmp_path, scale, lease_s=20.0, renew_s=0.1)
        plain = a_grid(server.url, tmp_path, scale)
        engine = Puppet(parallel=4)
        async with behind.living(engine):
            for number in range(30):
                await _losing(proxy, 7 * number, plain.submit(f"t{number}"))
                await engine.asked(number + 1)
                stream = engine.streams[-1]
                stream.say("word")
                await _losing(proxy, 5 * number, _done(stream))
                assert (await plain.end(f"t{number}")).state is State.DONE
            texts = [
                [e.item for e in await plain.log(f"t{n}") if isinstance(e.item, Delta)]
                for n in range(30)
            ]
            assert len(engine.streams) == 30
        behind.store.close()
        plain.store.close()
    assert texts == [[Delta(content="word")]] * 30


async def _losing(proxy: Proxy, after_bytes: int, act: Awaitable[None]) -> None:
    """Does it, and cuts a connection once so many more bytes of replies have passed on it."""
    before = proxy.connections
    proxy.cut_answers_after(after_bytes)
    await act
    await until_async(lambda: proxy.connections > before, what="a connection to be cut")
    proxy.heal()


async def _done(stream: Stream) -> None:
    stream.done()


async def test_nothing_is_emitted_once_the_lease_has_ended(
    server: Server, tmp_path: Path, scale: float
) -> None:
    """Renewals do not get through, text would: it is kept until the lease runs again."""
    grid = a_grid(server.url, tmp_path, scale, lease_s=1.0, renew_s=0.1)
    engine = Puppet()
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        engine.streams[0].say("first")

        async def first() -> bool:
            return await grid.text("t1") == "first"

        await until_async(first, what="the first text")
        crew_held = _held_of(living)
        crew_held.leased(-100.0)  # as if the machine had slept: the lease is long over
        assert not crew_held.emits()
        engine.streams[0].say(" second")
        engine.streams[0].done()
        assert (await grid.end("t1")).state is State.DONE
        assert crew_held.emits()
        assert await grid.text("t1") == "first second"
    grid.store.close()


def _held_of(living: Living) -> Held:
    assert living.life.crew is not None
    return living.life.crew.held
