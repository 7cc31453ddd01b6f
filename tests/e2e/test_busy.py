"""A busy worker is no ghost, and a slow start is no zombie."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cogrid.engine.fault import Mode
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import MODEL, Grid, chats, said
from tests.e2e.overlap import at_defaults
from tests.wait import until_async

UNHARMED = {"claimed", "done", "submitted"}
"""The only transitions of tasks in a run without a fault."""
ABOUT_WORKERS = {"hello", "registered", "hold"}


def _harm(grid: Grid) -> dict[str, int]:
    """Every transition that a fault-free run does not have."""
    return {e: n for e, n in grid.edges().items() if e not in UNHARMED | ABOUT_WORKERS}


async def _all_answered(asked: list[Chat], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        for chat in asked:
            assert await chat.ended(within_s) is Ending.ANSWER
            assert chat.text == said(8)
            assert chat.ran["recoveries"] == 0


@at_defaults
async def test_thirty_in_a_row(grid: Grid) -> None:
    """One worker, one slot, 30 tasks of 1 s each: not one recovery, not one move."""
    await grid.begin()
    reaper = grid.daemons["reaper"]
    engine = await grid.engine(delay_s=1 / 8)
    grid.worker("esxi", engine)
    await grid.up("esxi")

    asked = [
        grid.chat(worker="esxi" if n % 2 else "", stream=n % 3 != 0, status=n % 5 == 0)
        for n in range(30)
    ]
    await until_async(lambda: len(grid.events("submitted")) == 30)
    await _all_answered(asked, 60)
    assert _harm(grid) == {}
    assert grid.edges()["done"] == 30
    assert len(chats(engine)) == 30
    assert engine.records.peak == 1
    assert not reaper.lines("[reaper]", "task=")


@at_defaults
async def test_long_load_and_long_prompt(grid: Grid) -> None:
    """90 s to load the model, then 90 s until the first token: it is waited for."""
    grid.coordinator()
    reaper = grid.reaper()
    engine = await grid.engine()
    grid.worker("esxi", engine)
    await until_async(lambda: grid.is_ready("esxi"), 30)

    # The probe has loaded the model in no time; now the engine has dropped it, and the worker has
    # seen that.
    engine.memory.loaded.clear()
    engine.models[MODEL] = replace(engine.models[MODEL], load_s=90)
    engine.set(Mode.SLOW_FIRST, seconds=90, times=1)
    await until_async(lambda: '"loaded":true' not in _models(grid), 40, "it to see the unloading")
    await grid.up("esxi")
    first = grid.chat(status=True)
    await until_async(lambda: len(chats(engine)) == 1)
    behind = [grid.chat(ollama=True), grid.chat(stream=False)]
    assert await first.ended(200) is Ending.ANSWER
    assert 179 < first.took_s < 186
    assert first.text == said(8)
    await _all_answered(behind, 10)
    assert _harm(grid) == {}
    assert not reaper.lines("[reaper]", "task=")


def _models(grid: Grid) -> str:
    return grid.redis.hget("worker:esxi", "models") or ""
