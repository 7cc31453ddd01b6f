"""``cogrid spof --fix`` on a fleet of three hosts with fake engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cogrid.cli.main import run
from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from cogrid.engine.find import open_engine
from tests.servers import Server
from tests.wait import until_async
from tests.worker.grid import a_grid

HAS = {"esxi": "gemma3:1b", "ai-core": "llama3.2:1b", "nas": "qwen3:4b"}


@pytest.fixture
async def fleet(
    server: Server, tmp_path: Path, scale: float, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[dict[str, FaultEngine]]:
    """Each model on one of three hosts."""
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_TIME_SCALE", str(scale))
    grid = a_grid(server.url, tmp_path, scale)
    engines = {}
    async with AsyncExitStack() as stack:
        for host, model in HAS.items():
            monkeypatch.setattr("socket.gethostname", lambda host=host: host)
            engine = engines[host] = await stack.enter_async_context(FaultEngine([model]))
            engine.shelf.offer(*(FaultModel(name) for name in HAS.values()))
            opened = open_engine("ollama", engine.url)
            await stack.enter_async_context(grid.living(opened, id=host, machine=host))

        async def all_served() -> bool:
            return await cogrid("spof", "--model", "qwen3:4b") == 3

        await until_async(all_served, what="the last worker's model")
        yield engines
    grid.store.close()


async def cogrid(*words: str) -> int:
    return await asyncio.to_thread(run, list(words))


async def test_it_ends_with_nothing_to_find(
    fleet: dict[str, FaultEngine], capsys: pytest.CaptureFixture[str]
) -> None:
    assert await cogrid("spof") == 3
    capsys.readouterr()
    assert await cogrid("spof", "--fix", "--dry-run") == 0
    plan = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[1] for line in plan) == sorted(HAS.values())
    assert [len(engine.models) for engine in fleet.values()] == [1, 1, 1]
    assert await cogrid("spof", "--fix", "--yes") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no single point of failure is left"
    assert sum(len(engine.models) for engine in fleet.values()) == 6
    assert await cogrid("spof") == 0
    capsys.readouterr()
    assert await cogrid("spof", "--fix", "--yes", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["pulls"], document["exact"], document["schema"]) == ([], True, 1)


async def test_a_pull_that_fails_is_exit_1(
    fleet: dict[str, FaultEngine], capsys: pytest.CaptureFixture[str]
) -> None:
    for engine in fleet.values():
        engine.set(Mode.MISSING, model="qwen3:4b")
    assert await cogrid("spof", "--fix", "--yes", "--model", "qwen3:4b") == 1
    told = capsys.readouterr().out
    assert "file does not exist" in told
    assert "only nas can serve qwen3:4b" in told


def test_a_grid_without_a_model_has_none_on_two_hosts(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    assert run(["spof", "--fix", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("no worker has told of a model yet")


@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",), ("--fix", "--without", "esxi")])
def test_options_that_exclude_each_other(words: tuple[str, ...]) -> None:
    assert run(["spof", *words]) == 2
