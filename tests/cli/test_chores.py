"""``cogrid model pull``, ``remove`` and ``warm`` as an operator types them, with a worker beside a
fault engine."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cogrid.cli.main import run
from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from cogrid.engine.find import open_engine
from cogrid.model.worker import OfferState
from tests.cli.terminal import on_terminal
from tests.servers import Server
from tests.wait import until_async
from tests.worker.grid import MODEL, Grid, a_grid

NEW = "llama3.2:1b"


@dataclass
class Esxi:
    grid: Grid
    engine: FaultEngine

    async def offers(self, *models: str) -> None:
        async def told() -> bool:
            worker = await self.grid.worker()
            now = {o.name for o in worker.offers if o.state is OfferState.OK} if worker else set()
            return now == set(models)

        await until_async(told, what=f"esxi to offer {models}")


@pytest.fixture
async def esxi(
    server: Server, tmp_path: Path, scale: float, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Esxi]:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_TIME_SCALE", str(scale))
    grid = a_grid(server.url, tmp_path, scale)
    async with FaultEngine() as engine:
        engine.shelf.offer(FaultModel(NEW, size_bytes=2_000_000_000))
        async with grid.living(open_engine("ollama", engine.url)):
            yield Esxi(grid, engine)
    grid.store.close()


async def cogrid(*words: str) -> int:
    return await asyncio.to_thread(run, list(words))


async def test_pull_warm_and_remove(
    esxi: Esxi, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--dry-run") == 0
    assert capsys.readouterr().out == "would pull llama3.2:1b on esxi\n"
    assert NEW not in esxi.engine.models
    esxi.engine.shelf.steps_s = 0.3
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--yes") == 0
    told = capsys.readouterr()
    assert told.out == "esxi has llama3.2:1b\n"
    assert "esxi: llama3.2:1b: pulling manifest\n" in told.err
    assert "% of 1.8 GB" in told.err
    await esxi.offers(MODEL, NEW)
    assert await cogrid("model", "warm", NEW, "--yes") == 0
    assert capsys.readouterr().out == "esxi has loaded llama3.2:1b\n"
    assert await cogrid("model", "remove", NEW, "--worker", "esxi", "--yes") == 1
    assert "nobody else can serve llama3.2:1b" in capsys.readouterr().err
    homes = esxi.grid.store.keys.models
    server.client.zadd(homes, {NEW: 1, MODEL: 1})
    assert await cogrid("model", "remove", NEW, "--worker", "esxi", "--yes", "--force") == 0
    assert capsys.readouterr().out == "esxi no longer has llama3.2:1b\n"
    await esxi.offers(MODEL)
    assert server.client.zrange(homes, 0, -1) == [MODEL.encode()]
    assert await cogrid("spof", "--json") == 3
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [each["subject"] for each in found] == [MODEL]


async def test_json_is_a_document_a_line(esxi: Esxi, capsys: pytest.CaptureFixture[str]) -> None:
    esxi.engine.shelf.steps_s = 0.3
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--yes", "--json") == 0
    told = capsys.readouterr()
    *steps, last = [json.loads(line) for line in told.out.splitlines()]
    assert {each["schema"] for each in (*steps, last)} == {1}
    assert steps[0]["progress"]["status"] == "pulling manifest"
    assert any(each["progress"]["total_bytes"] for each in steps)
    assert (last["dry_run"], last["chores"][0]["state"]) == (False, "done")
    assert told.err == ""


async def test_a_failure_is_told_and_exits_with_1(
    esxi: Esxi, capsys: pytest.CaptureFixture[str]
) -> None:
    esxi.engine.set(Mode.ERROR_LINE, after=2, model=NEW)
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--yes") == 1
    told = capsys.readouterr().out
    assert told.startswith("esxi: pull of llama3.2:1b failed: llama3.2:1b on esxi: ")
    assert "no space left on device" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pull", NEW, "--worker", "esxy"), "there is no worker 'esxy'"),
        (("remove", NEW, "--worker", "esxi"), "is not known to this grid"),
        (("warm", NEW), "is not known to this grid"),
    ],
)
async def test_what_cannot_be_asked(
    esxi: Esxi, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert await cogrid("model", *words, "--yes") == 1
    assert said in capsys.readouterr().err


async def test_interrupted_the_pull_is_cancelled(
    esxi: Esxi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cogrid.ops import chores

    esxi.engine.set(Mode.STALL, after=3, model=NEW)

    def interrupted(*given: object) -> object:
        for looks, steps in enumerate(follow(*given)):  # type: ignore[arg-type]
            yield steps
            if looks and steps[0].status:
                raise KeyboardInterrupt

    follow = chores.follow
    monkeypatch.setattr(chores, "follow", interrupted)
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--yes") == 130
    assert "cancelled" in capsys.readouterr().err

    async def left() -> bool:
        worker = await esxi.grid.worker()
        return worker is not None and not worker.chores

    await until_async(left, what="the pull to be left")


@pytest.mark.parametrize(
    ("env", "bar", "moves"),
    [({}, "━", True), ({"TERM": "dumb"}, "", False), ({"NO_COLOR": "1"}, "━", True)],
    ids=str,
)
async def test_a_bar_on_a_terminal(esxi: Esxi, env: dict[str, str], bar: str, moves: bool) -> None:
    """On one that can move its cursor; the other gets nothing that moves."""
    esxi.engine.shelf.steps_s = 0.3
    code, shown = await asyncio.to_thread(
        on_terminal, "model", "pull", NEW, "--worker", "esxi", "--yes", columns=100, cues=(), **env
    )
    assert code == 0
    assert bar in shown
    assert f"esxi {NEW}" in shown
    assert ("\x1b[" in shown) is moves
    assert re.search(r"\x1b\[(\d+;)*3\dm", shown) is None or "NO_COLOR" not in env
    assert shown.rstrip().endswith(f"esxi has {NEW}")


async def test_lines_in_a_pipe(esxi: Esxi, capsys: pytest.CaptureFixture[str]) -> None:
    esxi.engine.shelf.steps_s = 0.3
    assert await cogrid("model", "pull", NEW, "--worker", "esxi", "--yes") == 0
    told = capsys.readouterr()
    assert told.out == f"esxi has {NEW}\n"
    lines = told.err.splitlines()
    assert len(lines) == len(set(lines)) > 3
    assert "\x1b" not in told.err
