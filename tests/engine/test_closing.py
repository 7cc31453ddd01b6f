"""A connection is closed at once where an answer is not wanted any more, and kept where it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from cogrid.engine.api import Done, Engine
from cogrid.engine.fault import FaultEngine, Mode, Outcome
from cogrid.model.chat import Delta
from cogrid.model.task import Kind
from tests.engine.asking import a_request, fail, read
from tests.wait import until_async

AT_ONCE_S = 1.0
"""Well under the two seconds within which a slot must be free again."""


async def _aborted(fault: FaultEngine) -> None:
    await until_async(
        lambda: fault.records.all and fault.records.all[-1].outcome is Outcome.ABORTED,
        AT_ONCE_S,
        "the engine to see the connection closed",
    )
    assert fault.records.running == 0


async def _first(items: AsyncGenerator[Delta | Done, None]) -> Delta | Done:
    return await anext(items)


async def test_closing_the_generator_mid_stream(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.STALL, after=2)
    items = engine.stream(a_request())
    assert isinstance(await anext(items), Delta)
    await items.aclose()
    await _aborted(fault)


@pytest.mark.parametrize("mode", [Mode.HANG, Mode.STALL])
@pytest.mark.parametrize("kind", [Kind.CHAT, Kind.EMBED])
async def test_cancelling_the_task_that_waits(
    engine: Engine, fault: FaultEngine, mode: Mode, kind: Kind
) -> None:
    fault.set(mode if kind is Kind.CHAT else Mode.HANG)
    task = asyncio.create_task(_first(engine.stream(a_request(kind))))
    await until_async(lambda: fault.records.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _aborted(fault)


async def test_a_time_limit_of_the_caller(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.STALL, after=3)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await read(engine)
    await _aborted(fault)


async def test_two_hundred_times_without_a_leak(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.STALL, after=1)
    for _ in range(200):
        items = engine.stream(a_request())
        await anext(items)
        await items.aclose()
    await until_async(lambda: fault.records.count(Outcome.ABORTED) == 200)
    fault.switches.clear()
    await read(engine)
    assert fault.records.peak <= 3
    assert not [t for t in asyncio.all_tasks() if "stream" in repr(t.get_coro())]


async def test_a_whole_answer_keeps_the_connection(engine: Engine, fault: FaultEngine) -> None:
    for _ in range(20):
        await read(engine)
    assert len({record.connection for record in fault.records.all}) == 1


async def test_a_refusal_keeps_the_connection(engine: Engine, fault: FaultEngine) -> None:
    await fail(engine, a_request(model="nope"))
    await read(engine)
    assert len({record.connection for record in fault.records.all}) == 1


async def test_a_closed_answer_does_not_lend_its_connection(
    engine: Engine, fault: FaultEngine
) -> None:
    """What is left of an answer nobody reads must not be taken for the next one."""
    fault.set(Mode.STALL, after=2, times=1)
    items = engine.stream(a_request())
    await anext(items)
    await items.aclose()
    deltas, _ = await read(engine)
    assert deltas[0].content.startswith("0 ")
    assert len({record.connection for record in fault.records.all}) == 2


async def test_many_at_once(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.DELAY, seconds=0.02)
    answers = await asyncio.gather(*(read(engine) for _ in range(16)))
    assert fault.records.peak == 16
    assert {len(deltas) > 1 for deltas, _ in answers} == {True}


async def test_an_engine_with_one_slot_lets_the_others_wait() -> None:
    from cogrid.engine.find import open_engine

    async with FaultEngine(parallel=1, delay_s=0.005) as fault:
        engine = open_engine("ollama", fault.url)
        await asyncio.gather(*(read(engine) for _ in range(3)))
        firsts = sorted(record.first_s for record in fault.records.all)
        ends = sorted(record.ended_s for record in fault.records.all)
        assert firsts[1] >= ends[0]
        assert firsts[2] >= ends[1]
        await engine.aclose()
