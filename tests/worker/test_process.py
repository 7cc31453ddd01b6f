"""``cogrid worker run`` as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cogrid.model.task import State
from cogrid.model.worker import WorkerState
from tests.servers import Server
from tests.wait import until_async
from tests.worker.grid import Grid

DEMO = "demo-echo"


@asynccontextmanager
async def a_process(
    server: Server, home: Path, *words: str, **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """``cogrid worker run`` with the demonstration, killed at the end if it still runs."""
    command = ("-m", "cogrid.cli.main", "worker", "run", "--id", "esxi", "--engine", "demo")
    environment = {**os.environ, "COGRID_REDIS_URL": server.url, "XDG_STATE_HOME": str(home), **env}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        *words,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process) -> str:
    _, stderr = await asyncio.wait_for(process.communicate(), 20)
    return stderr.decode()


async def test_it_serves_until_sigterm_and_ends_with_0(
    server: Server, grid: Grid, tmp_path: Path
) -> None:
    async with a_process(server, tmp_path) as process:
        worker = await grid.worker_is(WorkerState.READY)
        await grid.submit("t1", model=DEMO)
        assert (await grid.end("t1")).state is State.DONE
        process.send_signal(signal.SIGTERM)
        lines = (await said(process)).splitlines()
    assert process.returncode == 0
    assert (worker.pool, worker.slots, worker.engine.split()[0]) == ("cpu", 4, "demo")
    assert any("[register] worker_id=esxi models=['demo-echo']" in line for line in lines)
    assert lines[-1].endswith("[stop] worker_id=esxi ended")


async def test_a_second_one_beside_it_is_told_the_first_ones_pid(
    server: Server, grid: Grid, tmp_path: Path
) -> None:
    async with a_process(server, tmp_path) as first:
        await grid.worker_is(WorkerState.READY)
        async with a_process(server, tmp_path) as second:
            text = await said(second)
        assert second.returncode == 1
        assert f"worker esxi already runs on this machine, as process {first.pid}" in text


async def test_a_killed_one_is_replaced_at_once_under_its_name(
    server: Server, grid: Grid, tmp_path: Path
) -> None:
    async with a_process(server, tmp_path, COGRID_LIMITS_LEASE_S="600") as first:
        before = await grid.worker_is(WorkerState.READY)
        first.kill()
        await first.wait()
    async with a_process(server, tmp_path, COGRID_LIMITS_LEASE_S="600"):

        async def replaced() -> bool:
            now = await grid.worker()
            return now is not None and now.instance != before.instance and now.state == "ready"

        await until_async(replaced, what="the new process to have the name")


async def test_a_trial_tells_by_its_status(server: Server, grid: Grid, tmp_path: Path) -> None:
    async with a_process(server, tmp_path, "--trial", "20") as process:
        text = await said(process)
    assert process.returncode == 0
    assert "[sanity] checking demo-echo ... OK" in text
    assert "[redis] OK" in text
    nowhere = {"COGRID_REDIS_URL": "redis://127.0.0.1:9/0"}
    words = ("--trial", "20", "--models", "gemma3:1b")
    async with a_process(server, tmp_path, *words, **nowhere) as process:
        text = await said(process)
    assert process.returncode == 3
    assert "[redis] FAILED: Redis at redis://127.0.0.1:9/0 cannot be reached" in text
    assert "[trial] gemma3:1b: missing" in text
    assert await grid.worker() is None


async def test_a_trial_as_json(server: Server, grid: Grid, tmp_path: Path) -> None:
    async with a_process(server, tmp_path, "--trial", "20", "--json") as process:
        found = json.loads((await process.communicate())[0])
    assert process.returncode == 0
    assert (found["schema"], found["engine_url"], found["redis"]["error"]) == (1, "demo:", None)
    assert [model["state"] for model in found["models"]] == ["ok"]


async def test_wrong_words_are_told_with_what_is_right(server: Server, tmp_path: Path) -> None:
    async with a_process(server, tmp_path, "--pool", "a b") as process:
        text = await said(process)
    assert process.returncode == 2
    assert "worker.pool is 'a b'" in text
