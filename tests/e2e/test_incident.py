"""The incident: a worker that registered and died, and the task that waits for it."""

from __future__ import annotations

import time

from tests.e2e.chat import Chat, Ending
from tests.e2e.daemon import Daemon
from tests.e2e.grid import MODEL, Grid, chats, said
from tests.e2e.overlap import at_defaults
from tests.wait import until_async

SENTENCE = (
    "no alternative worker can serve model 'gemma3:1b' (reason={reason}); single point of failure"
)
REASONS = ("ghost_pending", "dead_worker")
DELAY_S = 0.2


async def _esxi(grid: Grid) -> Daemon:
    """A worker that registers, and whose claim loop never makes its first turn."""
    switch = grid.directory / "hang"
    switch.touch()
    engine = await grid.engine()
    return grid.worker("esxi", engine, env={"COGRID_TEST_HANG_CLAIMS": str(switch)})


async def _asked_of_the_dead(grid: Grid, esxi: Daemon) -> tuple[Chat, float]:
    """A chat in the queue of a worker that was killed just before. Returns when (monotonic)."""
    esxi.kill()
    killed_s = time.monotonic()
    assert not grid.redis.hexists("worker:esxi", "polled_at"), "it has polled"
    chat = grid.chat(worker="esxi", status=True)
    await chat.accepted()
    assert chat.headers["x-cogrid-queue"] == "tasks:cpu:esxi"
    assert chat.headers["x-cogrid-domain"] == "general"
    assert chat.headers["x-cogrid-model"] == MODEL
    return chat, killed_s


@at_defaults
async def test_another_pool_answers(grid: Grid) -> None:
    """Killed before its first poll; ai-core, in another pool, answers within 25 s of the kill."""
    await grid.begin()
    reaper = grid.daemons["reaper"]
    esxi = await _esxi(grid)
    spare = await grid.engine(gpu=True)
    grid.worker("ai-core", spare, pool="gpu")
    await grid.up("esxi", "ai-core")

    chat, killed_s = await _asked_of_the_dead(grid, esxi)
    assert await chat.ended(30) is Ending.ANSWER
    assert chat.ended_s - killed_s < 25
    assert chat.text == said(8)
    assert [record.tokens for record in chats(spare)] == [8]

    (moved,) = grid.events("moved", task=chat.task)
    reason = moved.reason.split()[0]
    assert reason in REASONS
    start = f"domain general · model {MODEL} · worker "
    assert chat.told[0] == f"{start}esxi · queue tasks:cpu:esxi · ⏳ waiting, position 1"
    assert any(f"moved from esxi ({reason}) to ai-core" in line for line in chat.told), chat.told
    assert chat.told[-1].startswith(f"{start}ai-core · queue tasks:gpu:shared:{MODEL} · ")
    assert chat.told[-1].endswith("running on ai-core")
    assert chat.ran["worker"] == "ai-core"
    assert chat.ran["recoveries"] == 0, "it was moved, it never ran on esxi"

    line = await reaper.says("[reaper] REQUEUE", f"task={chat.task}")
    assert f"worker_id=esxi reason={reason} evidence=" in line
    assert f"queue=tasks:gpu:shared:{MODEL} homes=ai-core" in line


@at_defaults
async def test_nobody_else_has_the_model(grid: Grid) -> None:
    """With no second worker the client gets the incident's sentence within 30 s of the kill."""
    await grid.begin()
    reaper = grid.daemons["reaper"]
    esxi = await _esxi(grid)
    await grid.up("esxi")

    chat, killed_s = await _asked_of_the_dead(grid, esxi)
    assert await chat.ended(35) is Ending.ERROR
    assert chat.ended_s - killed_s < 30
    assert any(SENTENCE.format(reason=reason) in chat.error for reason in REASONS), chat.error
    line = await reaper.says(f"[reaper] FAIL task={chat.task}: ")
    assert any(SENTENCE.format(reason=reason) in line for reason in REASONS)
    assert grid.field(chat.task, "state") == "failed"


@at_defaults
async def test_hash_of_the_dead_deleted(grid: Grid) -> None:
    """``DEL worker:esxi``, as in the incident: its task is elsewhere within 2 s."""
    await grid.begin()
    esxi = await _esxi(grid)
    spare = await grid.engine(gpu=True)
    grid.worker("ai-core", spare, pool="gpu")
    await grid.up("esxi", "ai-core")

    chat, _ = await _asked_of_the_dead(grid, esxi)
    assert not grid.events("moved", "claimed", task=chat.task)
    grid.redis.delete("worker:esxi")
    deleted_s = time.monotonic()
    moved = await grid.happens("moved", task=chat.task, within_s=2)
    assert moved.reason.split()[0] == "dead_worker"
    assert await chat.ended(5) is Ending.ANSWER
    assert chat.ended_s - deleted_s < 2.5
    assert chat.ran["worker"] == "ai-core"


@at_defaults
async def test_hash_of_the_living_deleted(grid: Grid) -> None:
    """The only worker's hash is deleted: its answer goes on, nothing fails, it is back in 6 s."""
    await grid.begin()
    engine = await grid.engine(tokens=60, delay_s=DELAY_S)
    grid.worker("esxi", engine)
    await grid.up("esxi")

    running = grid.chat()
    await running.reaches(5)
    waiting = (
        grid.chat(worker="esxi", max_tokens=8),
        grid.chat(worker="esxi", stream=False, max_tokens=8),
        grid.chat(max_tokens=8),
    )
    await until_async(lambda: len(grid.events("submitted")) == 4)
    grid.redis.delete("worker:esxi")
    deleted_s = time.monotonic()
    await until_async(lambda: len(grid.events("hello")) == 2, 6, "esxi to be back")
    await until_async(lambda: grid.is_ready("esxi"), 6 - (time.monotonic() - deleted_s))
    assert running.ending is Ending.BROKEN, "it ended too soon for this test"

    for chat in (running, *waiting):
        assert await chat.ended(30) is Ending.ANSWER
        assert chat.ran["worker"] == "esxi"
        assert chat.ran["recoveries"] == 0
    assert running.text == said(60)
    assert [chat.text for chat in waiting] == [said(8)] * 3
    assert running.took_s < 60 * DELAY_S + 2, "its answer stood still"
    assert not grid.events("reaped", "retried", "handed_back", "claimed_again")
    assert sorted(record.tokens for record in chats(engine)) == [8, 8, 8, 60]
