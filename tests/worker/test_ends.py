"""Leaving, draining, and a claim loop that hangs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cogrid.model.names import Token, WorkerId
from cogrid.model.task import State
from cogrid.model.worker import Wish, WorkerState
from cogrid.store.workers import wish
from cogrid.worker.drill import HANG_ENV
from tests.wait import until_async
from tests.worker.grid import Grid
from tests.worker.puppet import Puppet


async def test_it_finishes_what_runs_and_takes_nothing_more(grid: Grid) -> None:
    grid.limits = replace(grid.limits, drain_timeout_s=30.0)
    engine = Puppet()
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        await grid.submit("t2")
        living.life.leave()
        away = await grid.worker_is(WorkerState.AWAY)
        engine.streams[0].say("whole")
        engine.streams[0].done()
        assert await living.task == 0
    assert (await grid.end("t1")).state is State.DONE
    assert (await grid.task("t2")).state is State.PENDING
    assert len(engine.streams) == 1
    now = await grid.worker()
    assert now is not None
    # The last renewal leaves the lease as the one before it had set it.
    assert now.lease_until_ms is not None
    assert away.lease_until_ms is not None
    assert now.lease_until_ms >= away.lease_until_ms
    assert now.state is WorkerState.AWAY


async def test_what_takes_too_long_is_handed_back_unharmed(grid: Grid) -> None:
    grid.limits = replace(grid.limits, drain_timeout_s=0.1)
    engine = Puppet()
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        living.life.leave()
        assert await living.task == 0
    assert engine.streams[0].closed.is_set()
    task = await grid.task("t1")
    assert (task.state, task.attempts, task.recoveries) == (State.PENDING, 0, 0)


async def test_a_second_signal_does_not_wait(grid: Grid) -> None:
    grid.limits = replace(grid.limits, drain_timeout_s=60.0)
    engine = Puppet()
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        assert await living.ended() == 0
    assert (await grid.task("t1")).state is State.PENDING


async def test_text_that_was_sent_makes_a_hand_back_a_failure(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine) as living:
        await grid.submit("t1")
        await engine.asked(1)
        engine.streams[0].say("some")

        async def said() -> bool:
            return await grid.text("t1") == "some"

        await until_async(said, what="the text")
        await living.ended()
    end = await grid.end("t1")
    assert (end.state, end.code) == (State.FAILED, "broken_stream")
    assert "worker esxi was stopped while it ran gemma3:1b" in end.message


async def test_it_can_be_told_to_leave_before_its_engine_is_there(grid: Grid) -> None:
    async with grid.living(None, ready=False, engine="http://127.0.0.1:9") as living:
        assert await living.ended() == 0
    assert await grid.worker() is None


async def test_a_drain_takes_nothing_and_still_polls_until_it_is_over(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await _wish(grid, Wish("drain", by="ada"))
        draining = await grid.worker_is(WorkerState.DRAINING)
        await grid.submit("t1")

        async def polled() -> bool:
            now = await grid.worker()
            return now is not None and now.polled_at_ms > draining.polled_at_ms + 500

        await until_async(polled, what="polls while it drains")
        assert not engine.streams
        await _wish(grid, Wish("run", by="ada"))
        await engine.asked(1)


async def test_a_drain_with_an_end_ends_itself(grid: Grid) -> None:
    async with grid.living(Puppet()):
        now = await grid.raw("TIME")
        until_ms = int(now[0]) * 1000 + int(now[1]) // 1000 + 1000
        await _wish(grid, Wish("drain", until_ms, "ada"))
        await grid.worker_is(WorkerState.DRAINING)
        after = await grid.worker_is(WorkerState.READY)
    assert after.wish.state == "run"


async def _wish(grid: Grid, wanted: Wish) -> None:
    assert await grid.store.do(wish(grid.store.keys, WorkerId("esxi"), wanted))


async def test_a_full_worker_polls_and_answers_for_its_runs(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        before = await grid.worker()
        assert before is not None

        async def polled() -> bool:
            now = await grid.worker()
            return now is not None and now.polled_at_ms > before.polled_at_ms + 1000

        await until_async(polled, what="polls while it is full")
        assert (await grid.task("t1")).state is State.RUNNING


async def test_a_hung_claim_loop_renews_and_claims_nothing(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "hang"
    monkeypatch.setenv(HANG_ENV, str(switch))
    engine = Puppet(parallel=2)
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        switch.touch()
        hung = await grid.worker()
        assert hung is not None

        async def silent() -> bool:
            now = await grid.worker()
            return now is not None and now.beat_at_ms > now.polled_at_ms + 1500

        await until_async(silent, what="renewals without polls")
        await grid.submit("t2")
        engine.streams[0].say("goes on")
        engine.streams[0].done()
        assert (await grid.end("t1")).state is State.DONE
        ghost = await grid.worker()
        assert ghost is not None
        assert (await grid.task("t2")).state is State.PENDING
        assert ghost.state is WorkerState.READY
        assert ghost.free == 2
        switch.unlink()
        await engine.asked(2)


async def test_what_redis_thinks_runs_here_is_handed_back(grid: Grid) -> None:
    """After a failover: the run ended, and the server does not know that any more."""
    engine = Puppet()
    async with grid.living(engine):
        await grid.submit("t1")
        await engine.asked(1)
        token = Token((await grid.raw("HGET", "task:t1", "token")).decode())
        state = await grid.raw("DUMP", "task:t1")
        body = await grid.raw("DUMP", "task:t1:body")
        out = await grid.raw("DUMP", "task:t1:out")
        engine.streams[0].done()
        await grid.end("t1")
        for key, dump in (("task:t1", state), ("task:t1:body", body), ("task:t1:out", out)):
            await grid.raw("RESTORE", key, "0", dump, "REPLACE")
        await grid.raw("ZREM", "grid:finished", "t1")
        await grid.raw("ZADD", "grid:due", "9999999999999", "t1")
        await grid.raw("SADD", "worker:esxi:tasks", "t1")
        await engine.asked(2)
        assert (await grid.raw("HGET", "task:t1", "token")).decode() != token
        engine.streams[1].done()
        assert (await grid.end("t1")).state is State.DONE


async def test_a_bug_in_the_renewals_ends_the_worker(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that nobody renews would go on as a dead one."""
    engine = Puppet()
    async with grid.living(engine) as living:
        crew = living.life.crew
        assert crew is not None

        def broken(lease_ms: int) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(crew.held, "life", broken)
        with pytest.raises(ZeroDivisionError):
            await living.task
        living.task = asyncio.create_task(asyncio.sleep(0, 0))
