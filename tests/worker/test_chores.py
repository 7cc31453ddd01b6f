"""Chores: pull, remove, warm, beside the slots."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from cogrid.engine.find import open_engine
from cogrid.model.chat import Dialect, Request, encode_request
from cogrid.model.names import Queue, TaskId
from cogrid.model.task import Band, Kind, OnClose, State
from cogrid.model.worker import OfferState
from cogrid.store.tasks import Submission, cancel, submit
from cogrid.worker.pulled import Pulled
from tests.wait import until_async
from tests.worker.grid import MODEL, Grid, Living
from tests.worker.puppet import Puppet

NEW = "llama3.2:1b"
OWN = Queue("tasks:cpu:esxi")


async def ask(grid: Grid, kind: Kind, model: str = NEW, task: str = "c1") -> None:
    body = encode_request(Request(kind, Dialect.OLLAMA, model, {"model": model}))
    chore = Submission(
        TaskId(task), kind, model, OWN, OWN, body, "operator", band=Band.OPERATOR,
        on_close=OnClose.KEEP, max_attempts=1, max_recoveries=0, queue_timeout_ms=0,
    )  # fmt: skip
    assert (await grid.store.do(submit(grid.store.keys, chore))).status == "new"


async def states(grid: Grid) -> dict[str, OfferState]:
    worker = await grid.worker()
    return {offer.name: offer.state for offer in worker.offers} if worker else {}


@asynccontextmanager
async def beside(grid: Grid, server: FaultEngine, **settings: Any) -> AsyncIterator[Living]:
    """A worker beside the fault engine, which could pull one more model."""
    server.shelf.offer(FaultModel(NEW, size_bytes=1000))
    async with grid.living(open_engine("ollama", server.url), slots=1, **settings) as living:
        yield living


async def test_a_pull_beside_a_full_worker_is_told_and_offered(grid: Grid) -> None:
    async with FaultEngine(parallel=2) as server, beside(grid, server):
        server.set(Mode.HANG, model=MODEL)
        await grid.submit("t1")
        await grid.in_state("t1", State.RUNNING)
        await ask(grid, Kind.PULL)
        assert (await grid.end("c1")).state is State.DONE
        said = [msgspec.json.decode(line) for line in (await grid.text("c1")).splitlines()]
        assert said[0] == {"status": "pulling manifest"}
        assert said[-1] == {"status": "checking"}
        assert {"total", "completed"} <= set(said[-2])
        assert (await grid.task("t1")).state is State.RUNNING

        async def offered() -> bool:
            return (await states(grid)).get(NEW) is OfferState.OK

        await until_async(offered, what="the pulled model")
        await grid.store.do(cancel(grid.store.keys, TaskId("t1"), "by the test"))


async def test_what_was_pulled_is_offered_beside_the_list_also_later(grid: Grid) -> None:
    async with FaultEngine() as server:
        async with beside(grid, server, models=(MODEL,)):
            await ask(grid, Kind.PULL)
            assert (await grid.end("c1")).state is State.DONE
        async with beside(grid, server, models=(MODEL,)):

            async def both() -> bool:
                return await states(grid) == {MODEL: OfferState.OK, NEW: OfferState.OK}

            await until_async(both, what="both models")
            await ask(grid, Kind.REMOVE, task="c2")
            assert (await grid.end("c2")).state is State.DONE

            async def one() -> bool:
                return await states(grid) == {MODEL: OfferState.OK}

            await until_async(one, what="the removed model to be gone")
        assert NEW not in server.models


@pytest.mark.parametrize(
    ("mode", "words"),
    [(Mode.MISSING, "does not exist"), (Mode.ERROR_LINE, "no space left"), (Mode.CUT, "broke")],
)
async def test_a_pull_that_fails_says_why(grid: Grid, mode: Mode, words: str) -> None:
    async with FaultEngine() as server, beside(grid, server):
        server.set(mode, after=3, model=NEW)
        await ask(grid, Kind.PULL)
        end = await grid.end("c1")
        assert (end.state, end.code) == (State.FAILED, "engine_error")
        assert words in end.message
        assert "llama3.2:1b on esxi" in end.message


async def test_a_pull_that_stalls_fails(grid: Grid) -> None:
    grid.limits = replace(grid.limits, pull_stall_s=0.3)
    async with FaultEngine() as server, beside(grid, server):
        server.set(Mode.STALL, after=3, model=NEW)
        await ask(grid, Kind.PULL)
        end = await grid.end("c1")
        assert (end.state, end.code) == (State.FAILED, "timeout")
        assert "the pull of llama3.2:1b on esxi has not got on" in end.message


async def test_a_cancel_stops_the_pull(grid: Grid) -> None:
    async with FaultEngine() as server, beside(grid, server) as living:
        server.set(Mode.STALL, after=3, model=NEW)
        await ask(grid, Kind.PULL)
        await grid.in_state("c1", State.RUNNING)
        await grid.store.do(cancel(grid.store.keys, TaskId("c1"), "enough"))
        crew = living.life.crew
        assert crew is not None
        await until_async(lambda: not crew.runs.models, what="the pull to be left")
        worker = await grid.worker()
        assert worker is not None
        assert (worker.chores, worker.revoked, worker.free) == ((), (), 1)


async def test_warm_loads_a_model(grid: Grid) -> None:
    async with FaultEngine() as server, beside(grid, server):
        server.memory.loaded.clear()
        await ask(grid, Kind.WARM, MODEL)
        assert (await grid.end("c1")).state is State.DONE
        assert MODEL in server.memory.loaded
        server.set(Mode.SERVER_ERROR, model=MODEL)
        await ask(grid, Kind.WARM, MODEL, "c2")
        assert "it does not work there" in (await grid.end("c2")).message


async def test_an_engine_that_has_what_it_has_refuses(grid: Grid) -> None:
    async with grid.living(Puppet()):
        await ask(grid, Kind.PULL)
        end = await grid.end("c1")
        assert (end.code, "cannot be told which models it has" in end.message) == (
            "engine_refused",
            True,
        )


def test_a_list_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "worker-esxi.models"
    path.write_text("{")
    kept = Pulled(path)
    assert kept.models == ()
    kept.add("a")
    kept.add("b")
    kept.add("a")
    assert Pulled(path).models == ("b", "a")
    kept.drop("b")
    kept.drop("c")
    assert Pulled(path).models == ("a",)
    Pulled(tmp_path / "nowhere" / "x").add("a")
