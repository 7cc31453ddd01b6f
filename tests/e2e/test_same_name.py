"""Two machines, one name: never both at work, and never nobody for long."""

from __future__ import annotations

import time

import pytest

from tests.e2e.chat import Ending
from tests.e2e.daemon import Daemon
from tests.e2e.grid import Grid, Reachable, chats, said
from tests.wait import until_async

pytestmark = pytest.mark.e2e

SUPERSEDED = 75
SLACK_S = 15.0


def another_machine(grid: Grid, engine: Reachable) -> Daemon:
    """A worker esxi with a state directory of its own."""
    state = str(grid.directory / "other-machine")
    return grid.worker("esxi-too", engine, worker_id="esxi", env={"XDG_STATE_HOME": state})


async def test_second_waits_for_the_end_of_the_first(grid: Grid) -> None:
    """Refused by name while the first lives; at work within a lease of its death."""
    grid.coordinator()
    grid.reaper()
    engines = await grid.engine(tokens=30, delay_s=0.05), await grid.engine()
    first = grid.worker("esxi", engines[0])
    await grid.up("esxi")
    second = another_machine(grid, engines[1])
    await second.says("[hello] refused: worker_id=esxi is held by host", within_s=SLACK_S)
    running = grid.chat()
    await running.reaches(3)
    behind = grid.chat(worker="esxi")
    assert await running.ended(20) is Ending.ANSWER
    assert running.text == said(30)
    assert await behind.ended(20) is Ending.ANSWER
    assert not chats(engines[1])
    assert len(second.lines("refused")) == 1
    first.kill()
    waiting = grid.chat(worker="esxi")
    killed_s = time.monotonic()
    await second.says("[register]", within_s=20 * grid.scale + SLACK_S)
    assert await waiting.ended(20 * grid.scale + SLACK_S) is Ending.ANSWER
    assert time.monotonic() - killed_s < 25 * grid.scale + SLACK_S
    first.start()
    await until_async(lambda: len(first.lines("[hello] refused")) == 1, SLACK_S, "the first again")
    await second.stop()
    await until_async(lambda: len(first.lines("[register]")) == 2, 20 * grid.scale + SLACK_S)
    assert await grid.chat().ended(15) is Ending.ANSWER


async def test_the_first_comes_back_from_a_freeze(grid: Grid) -> None:
    """It has been replaced: it says nothing more, stops its engine and ends with 75."""
    grid.coordinator()
    grid.reaper()
    engines = await grid.engine(tokens=1000, delay_s=0.05), await grid.engine()
    first = grid.worker("esxi", engines[0], slots=2)
    await grid.up("esxi")
    second = another_machine(grid, engines[1])
    await second.says("[hello] refused", within_s=SLACK_S)
    shown = grid.chat()
    await shown.reaches(3)
    silent = grid.chat(stream=False)
    await until_async(lambda: len(grid.events("claimed")) == 2)
    first.pause()
    await second.says("[register]", within_s=20 * grid.scale + SLACK_S)
    assert await shown.ended(20) is Ending.ERROR
    assert await silent.ended(20) is Ending.ANSWER
    assert silent.text == said(8)
    assert silent.ran["recoveries"] == 1
    first.resume()
    assert await first.over(SLACK_S) == SUPERSEDED
    assert first.lines("[superseded] worker_id=esxi is now at host")
    assert await grid.chat().ended(15) is Ending.ANSWER
