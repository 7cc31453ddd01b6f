"""The zombie: a run that makes no progress, and a worker that comes back too late."""

from __future__ import annotations

import pytest

from cogrid.engine.fault import FaultEngine, Mode, Outcome
from tests.e2e.chat import Ending
from tests.e2e.daemon import Daemon
from tests.e2e.grid import Grid, chats, said
from tests.wait import until_async

pytestmark = pytest.mark.e2e

IDLE_S = 30.0
FIRST_S = 30.0
LEASE_S = 20.0
SLACK_S = 20.0
"""The scale of the grid multiplies all of them; the slack is for a slow machine."""
IMPATIENT = {
    "COGRID_LIMITS_PROMPT_S": f"{FIRST_S:g}",
    "COGRID_LIMITS_PROMPT_TOKENS_PER_S": "1000",
}
"""A first token may take two minutes, and more for a long prompt; too long for a test."""


async def _two(grid: Grid) -> tuple[FaultEngine, FaultEngine, Daemon]:
    """esxi, whose engine will misbehave, and a good ai-core in another pool."""
    await grid.begin()
    bad, good = await grid.engine(), await grid.engine(gpu=True)
    esxi = grid.worker("esxi", bad, env=IMPATIENT)
    grid.worker("ai-core", good, pool="gpu")
    await grid.up("esxi", "ai-core")
    return bad, good, esxi


async def test_stall_after_text_is_an_error(grid: Grid) -> None:
    """Five tokens reached the client, so nobody runs it again: one error, nothing said twice."""
    bad, good, _ = await _two(grid)
    bad.set(Mode.STALL, after=5)
    chat = grid.chat(worker="esxi")
    await chat.reaches(5)
    assert await chat.ended((IDLE_S + SLACK_S) * grid.scale) is Ending.ERROR
    assert IDLE_S * grid.scale - 0.5 < chat.took_s
    assert chat.text == said(5)
    assert "gemma3:1b" in chat.error
    assert "esxi" in chat.error
    assert chats(good) == []

    ollama = grid.chat(worker="esxi", ollama=True)
    assert await ollama.ended((IDLE_S + SLACK_S) * grid.scale) is Ending.ERROR
    assert ollama.text == said(5)
    assert ollama.broke, "a reader of NDJSON takes a clean end for a good one"
    assert [record.outcome for record in chats(bad)] == [Outcome.ABORTED] * 2
    assert grid.edges()["failed"] == 2


async def test_stall_without_a_reader_runs_again(grid: Grid) -> None:
    """Not streamed: nobody has seen the five tokens, so another worker answers."""
    bad, good, _ = await _two(grid)
    bad.set(Mode.STALL, after=5)
    chat = grid.chat(worker="esxi", stream=False)
    assert await chat.ended((IDLE_S + SLACK_S) * grid.scale) is Ending.ANSWER
    assert chat.text == said(8)
    assert chat.ran["worker"] == "ai-core"
    assert [record.outcome for record in chats(bad)] == [Outcome.ABORTED]
    assert [record.outcome for record in chats(good)] == [Outcome.DONE]


async def test_not_one_byte_runs_again(grid: Grid) -> None:
    """An engine that hangs before its headers: the client gets its answer from elsewhere and
    cannot tell, but for the status line."""
    bad, good, _ = await _two(grid)
    bad.set(Mode.HANG)
    streamed = grid.chat(worker="esxi", status=True)
    assert await streamed.ended((FIRST_S + SLACK_S) * grid.scale) is Ending.ANSWER
    assert FIRST_S * grid.scale - 0.5 < streamed.took_s
    assert streamed.text == said(8)
    assert streamed.ran["worker"] == "ai-core"
    assert any("moved from esxi (attempt_failed) to ai-core" in line for line in streamed.told)
    assert [record.outcome for record in chats(bad)] == [Outcome.ABORTED]
    assert len(chats(good)) == 1


async def test_frozen_worker_comes_back(grid: Grid) -> None:
    """SIGSTOP for longer than its lease: its task runs elsewhere, what it says afterwards is
    refused, its engine is let go, and it works again."""
    bad, _, esxi = await _two(grid)
    bad.set(Mode.SLOW_FIRST, seconds=0.5, times=1)
    chat = grid.chat(worker="esxi")
    await grid.happens("claimed")
    esxi.pause()
    assert await chat.ended((LEASE_S + SLACK_S) * grid.scale) is Ending.ANSWER
    assert chat.text == said(8)
    assert chat.ran["worker"] == "ai-core"
    assert chat.ran["recoveries"] == 1
    assert [event.reason for event in grid.events("reaped")] == ["dead_worker"]
    before = grid.redis.xlen(f"task:{chat.task}:out")

    # All eight tokens of the late answer lie in its socket.
    await until_async(lambda: chats(bad)[0].outcome is Outcome.DONE)
    esxi.resume()
    await grid.up("esxi")
    assert grid.redis.xlen(f"task:{chat.task}:out") == before
    assert grid.events("done", task=chat.task)[0].worker == "ai-core"

    again = grid.chat(worker="esxi")
    assert await again.ended(10) is Ending.ANSWER
    assert again.ran["worker"] == "esxi"


async def test_frozen_worker_in_the_middle_of_its_text(grid: Grid) -> None:
    """The client has seen text, so it gets an error; the rest of the text comes too late."""
    bad, good, esxi = await _two(grid)
    bad.set(Mode.DELAY, seconds=0.1)
    chat = grid.chat(worker="esxi", status=True)
    await chat.reaches(2)
    esxi.pause()
    seen = chat.tokens
    assert await chat.ended((LEASE_S + SLACK_S) * grid.scale) is Ending.ERROR
    assert chat.text == said(seen)
    assert "dead_worker" in chat.error
    esxi.resume()
    await grid.up("esxi")
    assert grid.field(chat.task, "state") == "failed"
    assert chats(good) == []
    assert grid.edges()["failed"] == 1
