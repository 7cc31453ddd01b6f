"""Probes at the start and later, quarantine, and the trial."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from dataclasses import replace

import pytest

from cogrid.config import Config
from cogrid.config.settings import Worker as WorkerSettings
from cogrid.engine.api import EngineError, Fault, Listed
from cogrid.model.limits import Limits
from cogrid.model.task import State
from cogrid.model.worker import OfferState
from cogrid.store.address import parse_address
from cogrid.worker.trial import trial
from tests.servers import Server
from tests.wait import until, until_async
from tests.worker.grid import Grid
from tests.worker.puppet import Puppet

BROKEN = EngineError(Fault.SERVER, "the model runner has died")


async def offers_are(grid: Grid, **states: OfferState) -> None:
    """Waits until Redis knows these states ("gemma3" stands for "gemma3:1b" and so on)."""

    async def told() -> bool:
        worker = await grid.worker()
        now = {o.name.partition(":")[0]: o.state for o in worker.offers} if worker else {}
        return now == states

    await until_async(told, what=f"{states}")


async def test_it_is_ready_as_soon_as_one_model_passed(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    engine = Puppet("gemma3:1b", "llama3.2:1b")
    engine.refusals["gemma3:1b"] = BROKEN
    async with grid.living(engine):
        await offers_are(grid, gemma3=OfferState.FAILED, **{"llama3.2": OfferState.OK})
    assert "[sanity] checking gemma3:1b ... FAILED: the model runner has died" in told.messages
    assert "[sanity] checking llama3.2:1b ... OK" in told.messages


async def test_without_a_model_that_works_it_does_not_register(grid: Grid) -> None:
    engine = Puppet()
    engine.refusals["gemma3:1b"] = BROKEN
    async with grid.living(engine, ready=False):
        await offers_are(grid, gemma3=OfferState.FAILED)
        worker = await grid.worker()
        assert worker is not None
        assert (worker.state, worker.registered_at) == ("starting", "")
        engine.refusals.clear()
        await offers_are(grid, gemma3=OfferState.OK)
        worker = await grid.worker()
        assert worker is not None
        assert worker.state == "ready"


async def test_a_model_that_is_pulled_later_is_served(grid: Grid) -> None:
    engine = Puppet()
    async with grid.living(engine):
        engine.models.append(Listed("llama3.2:1b"))
        await grid.submit("t1", model="llama3.2:1b")
        await engine.asked(1)
        engine.models.pop(0)
        await offers_are(grid, gemma3=OfferState.MISSING, **{"llama3.2": OfferState.OK})


async def test_only_the_models_that_were_named_are_offered(grid: Grid) -> None:
    engine = Puppet("gemma3:1b", "llama3.2:1b")
    async with grid.living(engine, models=("gemma3:1b", "bge-m3")):
        ok, missing = OfferState.OK, OfferState.MISSING
        await offers_are(grid, gemma3=ok, **{"bge-m3": missing})
        assert engine.probes == ["gemma3:1b"]


async def test_a_model_that_fails_three_times_is_left_alone_and_the_other_goes_on(
    grid: Grid,
) -> None:
    grid.limits = replace(grid.limits, quarantine_s=30.0, quarantine_max_s=60.0)
    engine = Puppet("gemma3:1b", "llama3.2:1b")
    async with grid.living(engine):
        await offers_are(grid, gemma3=OfferState.OK, **{"llama3.2": OfferState.OK})
        for number in range(3):
            await grid.submit(f"bad{number}")
            await engine.asked(number + 1)
            engine.streams[-1].give(BROKEN)
            await grid.in_state(f"bad{number}", State.WAITING)
        await offers_are(grid, gemma3=OfferState.QUARANTINED, **{"llama3.2": OfferState.OK})
        worker = await grid.worker()
        assert worker is not None
        offer = worker.offer("gemma3:1b")
        assert offer is not None
        assert offer.reason == "the model runner has died"
        assert abs(offer.since_ms - worker.beat_at_ms) < 2000
        await grid.submit("waits")
        await grid.submit("asked", queue="tasks:cpu:esxi")
        await grid.submit("good", model="llama3.2:1b")
        await engine.asked(4)
        engine.streams[-1].done()
        assert (await grid.end("good")).state is State.DONE
        # What asked for this worker waits with the others for one that can.
        handed_back = await grid.in_state("asked", State.PENDING)
        assert handed_back.queue == "tasks:cpu:shared:gemma3:1b"
        assert (await grid.task("waits")).state is State.PENDING


async def test_a_quarantine_ends_with_a_probe(grid: Grid) -> None:
    grid.limits = replace(grid.limits, quarantine_s=0.2)
    engine = Puppet()
    async with grid.living(engine):
        engine.refusals["gemma3:1b"] = BROKEN
        for number in range(3):
            await grid.submit(f"bad{number}")
            await engine.asked(number + 1)
            engine.streams[-1].give(BROKEN)
        probes = len(engine.probes)
        await until_async(lambda: len(engine.probes) >= probes + 2, what="probes")
        await grid.submit("t1")
        engine.refusals.clear()
        await engine.asked(4)


async def test_an_engine_that_goes_and_comes_back_is_used_again_at_once(
    grid: Grid, told: pytest.LogCaptureFixture
) -> None:
    grid.limits = replace(grid.limits, quarantine_s=60.0, quarantine_max_s=60.0)
    engine = Puppet()
    async with grid.living(engine):
        engine.away = EngineError(Fault.UNREACHABLE, "nothing answers")
        await offers_are(grid, gemma3=OfferState.QUARANTINED)
        engine.away = None
        await offers_are(grid, gemma3=OfferState.OK)
    assert told.messages.count("[engine] lost: nothing answers") == 1
    assert told.messages.count("[engine] back: puppet:") == 1


async def test_a_probe_that_hangs_ends_at_its_limit() -> None:
    class Hanging(Puppet):
        async def probe(self, model: Listed) -> None:
            await super().probe(model)
            await until_async(lambda: False, timeout_s=60)

    limits = replace(Limits(), load_s=0.1, prompt_s=0.1, tick_s=0.1)
    config = Config(worker=WorkerSettings(id="esxi"), limits=limits)
    found = await trial(config, 10.0, Hanging())
    assert [(m.name, m.state) for m in found.models] == [("gemma3:1b", "failed")]
    assert not found.fine


async def test_a_trial_tells_what_it_found(told: pytest.LogCaptureFixture) -> None:
    config = Config(worker=WorkerSettings(id="esxi"), limits=Limits().scaled(0.1))
    engine = Puppet("gemma3:1b", "llama3.2:1b")
    found = await trial(config, 5.0, engine)
    assert found.fine
    assert (found.worker, found.engine_error, found.redis) == ("esxi", None, None)
    assert "[trial] 2 of 2 models are fine" in told.messages
    engine.refusals["llama3.2:1b"] = BROKEN
    found = await trial(config, 5.0, engine)
    assert [(m.name, m.state, m.reason) for m in found.models] == [
        ("gemma3:1b", OfferState.OK, None),
        ("llama3.2:1b", OfferState.FAILED, BROKEN.message),
    ]
    assert not found.fine
    assert "[trial] llama3.2:1b: failed" in told.messages
    assert "[trial] 1 of 2 models are fine" in told.messages
    engine.models.clear()
    assert not (await trial(config, 5.0, engine)).fine


async def test_a_trial_without_an_engine_says_who_was_asked(
    told: pytest.LogCaptureFixture,
) -> None:
    config = Config(worker=WorkerSettings(id="esxi", engine="http://127.0.0.1:9"))
    found = await trial(config, 0.3)
    assert (found.engine, found.models, found.fine) == (None, (), False)
    assert "127.0.0.1:9" in (found.engine_error or "")
    assert "[trial] not done within 0.3 s" in told.messages


async def test_a_trial_does_not_wait_for_an_engine_to_its_end(
    told: pytest.LogCaptureFixture,
) -> None:
    settings = WorkerSettings(id="esxi", engine="http://127.0.0.1:9")
    config = Config(worker=settings, limits=Limits().scaled(0.05))
    async with asyncio.timeout(10):
        found = await trial(config, 60.0)
    assert (found.engine, bool(found.engine_error)) == (None, True)
    assert "[trial] no engine within 0.25 s" in told.messages


async def test_a_trial_writes_to_redis_and_leaves_nothing_there(server: Server) -> None:
    config = Config(worker=WorkerSettings(id="esxi"))
    found = await trial(config, 5.0, Puppet(), parse_address(server.url))
    assert found.redis is not None
    assert (found.redis.error, found.fine) == (None, True)
    assert abs(found.redis.ahead_s or 0.0) < 1.0
    assert server.client.exists("worker:esxi", "grid:workers", "grid:events") == 0
    until(lambda: not server.client.keys(), what="the one key to go by itself")


async def test_a_trial_tells_why_redis_cannot_be_used_from_here() -> None:
    config = Config(worker=WorkerSettings(id="esxi"))
    found = await trial(config, 5.0, Puppet(), parse_address("redis://:secret@127.0.0.1:9/0"))
    assert found.redis is not None
    assert "cannot be reached" in (found.redis.error or "")
    assert "secret" not in repr(found)
    assert (found.redis.ahead_s, found.fine) == (None, False)


@pytest.mark.parametrize("taken", [0, 3], ids=["silent", "full"])
def test_a_trial_ends_in_time_when_redis_says_nothing(taken: int) -> None:
    """To the end of its thread, for which Python waits as well. taken: so many connections wait
    before it; with three, no more is let in."""
    config = Config(worker=WorkerSettings(id="esxi"), limits=Limits().scaled(0.1))
    with contextlib.ExitStack() as sockets:
        room = 0 if taken else 8
        silent = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=room))
        for _ in range(taken):
            before = sockets.enter_context(socket.socket())
            before.setblocking(False)
            before.connect_ex(silent.getsockname())
        address = parse_address(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        began_s = time.monotonic()
        found = asyncio.run(trial(config, 2.0, Puppet(), address))
        took_s = time.monotonic() - began_s
    assert found.redis is not None
    assert "cannot be reached" in (found.redis.error or "")
    assert took_s < 3.5
