"""kill -9 of a reaper in the middle of a pass: what it had not done, the next one does, once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.grid import MODEL, Grid, chats
from tests.e2e.overlap import scaled
from tests.e2e.rounds import PROOF_LIMIT_S, ROUNDS, in_many_grids
from tests.proxy import Proxy
from tests.wait import until_async

BACKLOG = 100
ACT_BYTES = 20_000
"""About what the acts of one such pass take on their way to Redis; cut somewhere within."""
LEASE_S = 20.0
SLACK_S = 20.0


async def kill_reapers(grid: Grid, rounds: int) -> None:
    """In every round the worker with a backlog is killed; the reaper is cut off in the middle of
    the pass that moves it, and killed; a new one finds the rest."""
    grid.coordinator()
    proxy = Proxy(grid.server.port)
    try:
        reaper = grid.reaper(redis=f"redis://127.0.0.1:{proxy.port}/0")
        engine, other = await grid.engine(), await grid.engine(gpu=True)
        esxi = grid.worker("esxi", engine)
        grid.worker("ai-core", other, pool="gpu", slots=4)
        chance = random.Random(rounds)
        for _ in range(rounds):
            await grid.up("esxi", "ai-core")
            tasks = await _backlog(grid, esxi)
            # What is said in a pass without acts is short; the acts go beyond the budget.
            await until_async(lambda: _lease_left_ms(grid) < 100 * grid.scale, LEASE_S)
            proxy.cut_requests_after(chance.randrange(ACT_BYTES))
            await until_async(lambda: _stands(grid), SLACK_S)
            reaper.kill()
            proxy.heal()
            reaper.start()
            await _all_moved(grid, tasks)
            esxi.start()
        edges = grid.edges()
        assert edges["submitted"] == edges["moved"] == edges["done"] == rounds * BACKLOG
        assert not {"failed", "reaped", "repaired", "retried", "cancelled"} & edges.keys(), edges
        assert len(chats(other)) == rounds * BACKLOG
        await grid.up("esxi", "ai-core")
    finally:
        proxy.close()


async def _give(grid: Grid) -> str:
    """A task for esxi that nobody waits for."""
    request = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
    answer = await grid.http.post("/task", json={"worker": "esxi", "request": request})
    assert answer.status_code == 202, answer.text
    assert answer.json()["queue"] == "tasks:cpu:esxi"
    return str(answer.json()["task"])


async def _backlog(grid: Grid, esxi: Daemon) -> list[str]:
    """Tasks in the queue of a worker that looks idle, and is killed."""
    esxi.pause()
    tasks = await asyncio.gather(*(_give(grid) for _ in range(BACKLOG)))
    assert grid.depth("tasks:cpu:esxi") == BACKLOG
    esxi.kill()
    return tasks


async def _all_moved(grid: Grid, tasks: list[str]) -> None:
    def moved() -> bool:
        return {event.task for event in grid.events("moved")}.issuperset(tasks)

    await until_async(moved, (2 * LEASE_S + SLACK_S) * grid.scale)
    await until_async(lambda: not grid.redis.zcard("grid:due"), SLACK_S)


def _lease_left_ms(grid: Grid) -> float:
    lease_ms = grid.redis.zscore("grid:workers", "esxi")
    return float(lease_ms or 0) - grid.now_ms()


def _stands(grid: Grid) -> bool:
    """No pass has begun for a while: it is cut off."""
    last_ms = int(grid.redis.hget("grid:reaper", "last_pass") or 0)
    return grid.now_ms() - last_ms > 3000 * grid.scale


@scaled
async def test_twenty_times(grid: Grid) -> None:
    await kill_reapers(grid, ROUNDS)


@pytest.mark.e2e
@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_two_hundred_times(tmp_path: Path) -> None:
    await in_many_grids(tmp_path, kill_reapers)
