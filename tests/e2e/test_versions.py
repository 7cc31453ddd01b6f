"""Hosts are brought up to date one after another: this version beside the next, and on what the
first one left in Redis.

``schema_1.json`` is that: all of a grid was killed at once, with a task that ran, two that waited
and one that was answered. It is never written anew; a version that cannot go on with it is wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogrid.engine.fault import Mode
from tests.e2e.chat import Ending
from tests.e2e.grid import Grid
from tests.e2e.record import dump, load, names
from tests.wait import until_async

pytestmark = pytest.mark.e2e

RECORD = json.loads(Path(__file__).with_name("schema_1.json").read_text())
LEFT = ["done", "pending", "pending", "running"]
NEXT = "import cogrid.store.passes\n\ncogrid.store.passes.SCHEMA += 1\n"
"""What makes a process one of the next version, run at its start. A step may only add; what it adds
the test writes."""
TOLD = "Redis holds the data of a newer cogrid (schema 2, here 1)"


@pytest.fixture
def next_one(tmp_path: Path) -> dict[str, str]:
    """The environment of a process of the next version."""
    (tmp_path / "sitecustomize.py").write_text(NEXT)
    return {"PYTHONPATH": str(tmp_path)}


async def test_a_worker_and_a_coordinator_work_on_beside_the_next_version(
    grid: Grid, next_one: dict[str, str]
) -> None:
    grid.patient()
    engine = await grid.engine()
    grid.daemon("reaper", ("reaper", "--daemon"), next_one)
    await until_async(lambda: grid.redis.hget("grid:reaper", "schema") == "2", 20, "its mark")
    old = (grid.coordinator(), grid.worker("esxi", engine))
    await grid.up("esxi")
    grid.redis.hset("worker:esxi", "colour", "green")
    chat = grid.chat()
    assert await chat.ended(20) is Ending.ANSWER
    for daemon in old:
        assert len(daemon.lines(TOLD, "until then this one works on")) == 1


async def test_the_next_versions_worker_and_coordinator_work_under_this_reaper(
    grid: Grid, next_one: dict[str, str]
) -> None:
    grid.patient()
    engine = await grid.engine()
    grid.reaper()
    grid.coordinator(env=next_one)
    grid.worker("esxi", engine, env=next_one)
    await grid.up("esxi")
    assert await grid.chat().ended(20) is Ending.ANSWER
    assert grid.redis.hget("grid:reaper", "schema") == "1"


async def test_what_the_first_version_left_is_answered(grid: Grid) -> None:
    grid.patient()
    load(grid.redis, RECORD, grid.now_ms())
    left = {task: grid.field(task, "state") for task in _tasks(grid)}
    assert sorted(left.values()) == LEFT
    (ran,) = (task for task, state in left.items() if state == "running")
    run = int(grid.field(ran, "run"))
    grid.worker("esxi", await grid.engine())
    await until_async(lambda: grid.is_ready("esxi") and len(grid.events("registered")) > 1, 20)
    await grid.begin()
    await until_async(lambda: {grid.field(task, "state") for task in left} == {"done"}, 30)
    assert int(grid.field(ran, "run")) > run
    grid.rests = False  # the laws count by an event log that the record begins in the middle


async def test_nothing_that_the_first_version_wrote_is_gone(grid: Grid) -> None:
    await leave(grid)
    assert names(RECORD) - names(dump(grid.redis, grid.now_ms())) == set()


async def leave(grid: Grid) -> None:
    """A grid that was killed in the middle of its work."""
    grid.patient()
    engine = await grid.engine()
    await grid.begin()
    grid.worker("esxi", engine)
    await grid.up("esxi")
    assert await grid.chat("the first").ended(20) is Ending.ANSWER
    engine.set(Mode.HANG)
    for words in ("runs", "waits", "waits too"):
        await grid.chat(words).accepted()
    await until_async(lambda: grid.edges()["claimed"] == 2, 20)
    for daemon in grid.daemons.values():
        daemon.end()
    grid.rests = False


def _tasks(grid: Grid) -> list[str]:
    return [key.split(":")[1] for key in grid.redis.scan_iter("task:*") if key.count(":") == 1]
