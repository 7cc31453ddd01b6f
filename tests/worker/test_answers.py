"""Runs that go well: short, long, streamed or not, several at once."""

from __future__ import annotations

from cogrid.engine.fault import FaultEngine, Mode, Switch
from cogrid.engine.find import find
from cogrid.model.chat import Claimed, Delta, End
from cogrid.model.task import State
from tests.wait import until_async
from tests.worker.grid import Grid
from tests.worker.puppet import USAGE, Puppet


async def test_a_short_answer_needs_one_entry_and_its_end(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        engine.streams[0].say("Hello", " world")
        engine.streams[0].done()
        await grid.end("t1")
        items = [entry.item for entry in await grid.log("t1")]
    assert items == [
        Claimed("esxi", "tasks:cpu:shared:gemma3:1b"),
        Delta(content="Hello world"),
        End(State.DONE, "stop", USAGE, worker="esxi"),
    ]


async def test_streamed_text_is_there_before_the_end(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        for word in ("one", " two", " three"):
            before = await grid.text("t1")
            engine.streams[0].say(word)

            async def arrived(want: str = before + word) -> bool:
                return await grid.text("t1") == want

            await until_async(arrived, what=f"{word!r} to arrive")
        engine.streams[0].done("length")
        end = await grid.end("t1")
        ids = [entry.id.partition("-")[2] for entry in await grid.log("t1")]
    assert end.finish_reason == "length"
    assert ids == ["0", "1", "2", "3", "9223372036854775808"]


async def test_text_that_nobody_watches_is_collected(grid: Grid) -> None:
    """Not streamed: what comes within a quarter of a second is one entry."""
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1", streamed=False)
        await engine.asked(1)
        stream = engine.streams[0]
        for word in "abc":
            stream.say(word)
            await until_async(stream._items.empty)
        stream.done()
        await grid.end("t1")
        texts = [e.item for e in await grid.log("t1") if isinstance(e.item, Delta)]
    assert texts == [Delta(content="abc")]


async def test_a_real_engine_s_long_stream_arrives_whole(grid: Grid) -> None:
    async with FaultEngine(tokens=500) as server:
        engine = await find(server.url)
        async with grid.living(engine):
            await grid.submit("t1")
            end = await grid.end("t1")
            text = await grid.text("t1")
    assert end.state is State.DONE
    assert end.usage.completion_tokens == 500
    assert len(text.split()) == 500


async def test_a_delta_of_300_kb_comes_in_pieces_of_64(grid: Grid) -> None:
    async with FaultEngine() as server:
        server.switches.set(Switch(Mode.BIG_DELTA))
        engine = await find(server.url)
        async with grid.living(engine):
            await grid.submit("t1")
            await grid.end("t1")
            pieces = [e.item for e in await grid.log("t1") if isinstance(e.item, Delta)]
    sizes = [len(piece.content.encode()) for piece in pieces]
    assert sum(sizes) >= 300_000
    assert max(sizes) <= 64 * 1024
    assert len(sizes) >= 5


async def test_slots_are_what_runs_at_once(grid: Grid) -> None:
    engine = Puppet(parallel=2)
    async with grid.living(engine):
        for number in range(5):
            await grid.submit(f"t{number}")
        await engine.asked(2)
        worker = await grid.worker()
        assert worker is not None
        assert (worker.slots, worker.free, len(worker.tasks)) == (2, 0, 2)
        for number in range(5):
            await engine.asked(number + 1)
            engine.streams[number].done()
            waiting = min(2, 4 - number)
            running = [s for s in engine.streams if not s.closed.is_set()]
            assert len(running) <= 2
            assert waiting >= 0
        for number in range(5):
            assert (await grid.end(f"t{number}")).state is State.DONE


async def test_a_worker_s_own_queue_is_served(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1", queue="tasks:cpu:esxi")
        await engine.asked(1)
        engine.streams[0].done()
        await grid.end("t1")
        claimed = (await grid.log("t1"))[0].item
    assert claimed == Claimed("esxi", "tasks:cpu:esxi")


async def test_many_short_tasks_all_end_once(grid: Grid) -> None:
    async with FaultEngine(tokens=3) as server:
        engine = await find(server.url)
        async with grid.living(engine, slots=8):
            for number in range(100):
                await grid.submit(f"t{number}", streamed=number % 2 == 0)
            ends = [await grid.end(f"t{number}") for number in range(100)]
            worker = await grid.worker()
    assert {end.state for end in ends} == {State.DONE}
    assert worker is not None
    assert (worker.tasks, worker.revoked) == ((), ())
