"""Runs that end before their engine does: cancelled, taken away, silent, too long, failed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from cogrid.engine.fault import FaultEngine, Mode, Switch
from cogrid.engine.fault.record import Outcome
from cogrid.engine.find import find
from cogrid.model.names import TaskId
from cogrid.model.task import State
from cogrid.store.tasks import cancel
from tests.wait import until_async
from tests.worker.grid import Grid
from tests.worker.puppet import Puppet


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("mode", [Mode.HANG, Mode.SLOW_FIRST, Mode.DELAY])
async def test_a_cancel_closes_the_engine_s_connection(
    grid: Grid, mode: Mode, streamed: bool
) -> None:
    async with FaultEngine(tokens=1000) as server:
        engine = await find(server.url)
        async with grid.living(engine):
            server.switches.set(Switch(mode, seconds=0.02 if mode is Mode.DELAY else 60))
            await grid.submit("t1", streamed=streamed)
            await until_async(lambda: server.records.running, what="the engine to be asked")
            if mode is Mode.DELAY:
                record = server.records.all[-1]
                await until_async(lambda: record.tokens > 3, what="tokens")
            asked_s = time.monotonic()
            await grid.store.do(cancel(grid.store.keys, TaskId("t1"), "by the test"))
            await until_async(lambda: server.records.count(Outcome.ABORTED) == 1, timeout_s=2)
            took_s = time.monotonic() - asked_s

            async def confirmed() -> bool:
                worker = await grid.worker()
                return worker is not None and not worker.revoked and worker.free == 1

            await until_async(confirmed, timeout_s=2, what="the slot to be free")
    assert took_s < 2
    assert (await grid.end("t1")).state is State.CANCELLED


async def test_the_slot_of_a_cancelled_run_serves_the_next(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        for number in range(20):
            await grid.submit(f"t{number}")
            await engine.asked(number + 1)
            engine.streams[-1].say("some")
            await grid.store.do(cancel(grid.store.keys, TaskId(f"t{number}"), "by the test"))
            await until_async(engine.streams[-1].closed.is_set, timeout_s=2)


async def test_silence_after_text_fails_a_streamed_run(grid: Grid) -> None:
    grid.limits = replace(grid.limits, idle_s=0.3)
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        engine.streams[0].say("some")
        end = await grid.end("t1")
        assert engine.streams[0].closed.is_set()
    assert (end.state, end.code) == (State.FAILED, "engine_error")
    assert "gemma3:1b on esxi: silent for" in end.message
    assert "since its last token" in end.message


async def test_silence_before_any_text_is_one_failed_attempt(grid: Grid) -> None:
    grid.limits = replace(grid.limits, prompt_s=0.2, load_s=0.1)
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        task = await grid.in_state("t1", State.WAITING)
    assert (task.attempts, task.avoid, task.recoveries) == (1, "esxi", 0)
    assert "no first token" in task.error


async def test_a_run_that_is_too_long_in_all_fails_for_good(grid: Grid) -> None:
    grid.limits = replace(grid.limits, total_s=0.3)
    async with FaultEngine(tokens=10_000) as server:
        server.switches.set(Switch(Mode.DELAY, seconds=0.01))
        engine = await find(server.url)
        async with grid.living(engine):
            await grid.submit("t1", streamed=False)
            end = await grid.end("t1")
            task = await grid.task("t1")
    assert (end.state, end.code, task.attempts) == (State.FAILED, "timeout", 1)
    assert "took longer than 0.3 s" in end.message


@pytest.mark.parametrize("mode", [Mode.SERVER_ERROR, Mode.BUSY, Mode.CUT, Mode.MISSING])
async def test_an_engine_s_fault_is_tried_elsewhere(grid: Grid, mode: Mode) -> None:
    async with FaultEngine() as server:
        engine = await find(server.url)
        async with grid.living(engine):
            server.switches.set(Switch(mode))
            await grid.submit("t1")
            task = await grid.in_state("t1", State.WAITING)
    assert (task.attempts, task.avoid) == (1, "esxi")
    assert task.error.startswith("gemma3:1b on esxi: ")


async def test_what_the_model_refuses_is_refused_once(grid: Grid) -> None:
    async with FaultEngine() as server:
        engine = await find(server.url)
        async with grid.living(engine):
            server.switches.set(Switch(Mode.REFUSE))
            await grid.submit("t1")
            end = await grid.end("t1")
    assert (end.state, end.code) == (State.FAILED, "engine_refused")
    assert "the prompt is longer than the context" in end.message


async def test_an_answer_that_breaks_off_after_text_is_no_clean_end(grid: Grid) -> None:
    async with FaultEngine() as server:
        engine = await find(server.url)
        async with grid.living(engine):
            server.switches.set(Switch(Mode.CUT, after=3))
            server.switches.set(Switch(Mode.DELAY, seconds=0.02))
            await grid.submit("t1")
            end = await grid.end("t1")
    assert (end.state, end.code) == (State.FAILED, "engine_error")


async def test_a_bug_costs_one_attempt_and_not_the_worker(
    grid: Grid, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        engine.streams[0].give(ValueError("oops"))
        task = await grid.in_state("t1", State.WAITING)
        await grid.submit("t2")
        await engine.asked(2)
    assert "a bug in cogrid" in task.error
    assert "a bug in cogrid" in caplog.text
