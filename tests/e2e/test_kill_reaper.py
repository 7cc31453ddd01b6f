"""kill -9 of a reaper in the middle of a pass: what it had not done, the next one does, once."""

from __future__ import annotations

import random
import secrets
from pathlib import Path

import pytest

from cogrid.model.chat import Dialect, Request, encode_request
from cogrid.model.names import TaskId, own_queue, shared_queue
from cogrid.model.task import Kind, OnClose
from cogrid.store.script import script
from cogrid.store.tasks import Submission, submit
from tests.e2e.daemon import Daemon
from tests.e2e.grid import MODEL, Grid, chats
from tests.e2e.overlap import scaled
from tests.e2e.rounds import PROOF_LIMIT_S, ROUNDS, in_many_grids
from tests.proxy import Proxy
from tests.wait import until_async

BACKLOG = 100
ACT_BYTES = 40_000
"""About what the acts of one such pass take on their way to Redis; cut somewhere within."""
LEASE_S = 20.0
SLACK_S = 20.0


async def kill_reapers(grid: Grid, rounds: int) -> None:
    """In every round the worker with a backlog is killed; the reaper is cut off in the middle of
    the pass that moves it, and killed; a new one finds the rest."""
    grid.coordinator()
    proxy = Proxy(grid.server.port)
    try:
        reaper = grid.reaper(redis=f"redis://127.0.0.1:{proxy.port}/0", patient=True)
        engine, other = await grid.engine(), await grid.engine(gpu=True)
        esxi = grid.worker("esxi", engine)
        grid.worker("ai-core", other, pool="gpu", slots=4)
        chance, done = random.Random(rounds), []
        for _ in range(rounds):
            await grid.up("esxi", "ai-core")
            tasks = _backlog(grid, esxi)
            proxy.cut_requests_after(chance.randrange(ACT_BYTES), script("move").sha.encode())
            await until_async(lambda: _stands(grid), LEASE_S + SLACK_S)
            reaper.kill()
            proxy.cut(refuse=True)
            proxy.heal()
            done.append(len(_moved(grid, tasks)))
            reaper.start()
            await _all_moved(grid, tasks)
            esxi.start()
        # Most were cut off with a part of the acts done.
        assert sum(0 < count < BACKLOG for count in done) >= rounds // 2, done
        edges = grid.edges()
        assert edges["submitted"] == edges["moved"] == edges["done"] == rounds * BACKLOG
        assert not {"failed", "reaped", "repaired", "retried", "cancelled"} & edges.keys(), edges
        assert len(chats(other)) == rounds * BACKLOG
        await grid.up("esxi", "ai-core")
    finally:
        proxy.close()


def _give(grid: Grid) -> list[str]:
    """Tasks for esxi that nobody waits for, all in one moment."""
    payload = {"messages": [{"role": "user", "content": "hello"}]}
    body = encode_request(Request(Kind.CHAT, Dialect.OPENAI, MODEL, payload | {"model": MODEL}))
    tasks = [TaskId(secrets.token_hex(16)) for _ in range(BACKLOG)]
    submissions = (
        Submission(
            id=task,
            kind=Kind.CHAT,
            model=MODEL,
            queue=own_queue("cpu", "esxi"),
            shared=shared_queue("cpu", MODEL),
            body=body,
            user="ada",
            streamed=False,
            on_close=OnClose.KEEP,
        )
        for task in tasks
    )
    grid.store.do_all([submit(grid.store.keys, submission) for submission in submissions])
    return [str(task) for task in tasks]


def _backlog(grid: Grid, esxi: Daemon) -> list[str]:
    """Tasks in the queue of a worker that looks idle, and is killed."""
    esxi.pause()
    tasks = _give(grid)
    assert grid.depth("tasks:cpu:esxi") == BACKLOG
    esxi.kill()
    return tasks


def _moved(grid: Grid, tasks: list[str]) -> set[str]:
    return {event.task for event in grid.events("moved")}.intersection(tasks)


async def _all_moved(grid: Grid, tasks: list[str]) -> None:
    def all_moved() -> bool:
        return len(_moved(grid, tasks)) == BACKLOG

    await until_async(all_moved, 2 * LEASE_S * grid.scale + SLACK_S)
    await until_async(lambda: not grid.redis.zcard("grid:due"), SLACK_S)


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
