"""More at once than the grid can take: each request is answered or turned away, nothing hangs, and
nothing stays behind."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from cogrid.engine.fault import Mode
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import Grid, said
from tests.wait import until_async

pytestmark = [pytest.mark.e2e, pytest.mark.defaults]

FLOOD = 1000
QUEUE = 50
SEED = 7


async def _flooded(grid: Grid, **limits: str) -> None:
    """Two workers, four slots each, and nobody who would tidy up behind them."""
    grid.coordinator(env=limits)
    for name in ("esxi", "ai-core"):
        grid.worker(name, await grid.engine(), slots=4, env=limits)
    await grid.up("esxi", "ai-core")


async def test_a_thousand_at_once(grid: Grid) -> None:
    """Both dialects, streamed and not; every third client loses patience."""
    await _flooded(grid)
    chance = random.Random(SEED)

    async def ask(number: int) -> Chat:
        chat = grid.chat(stream=number % 2 == 0, ollama=number % 4 < 2, status=number % 8 == 0)
        if number % 3 == 0:
            await asyncio.sleep(chance.uniform(0, 5))  # a person's patience
            await chat.leave()
        else:
            await chat.ended(90)
        return chat

    asked = await asyncio.gather(*(ask(number) for number in range(FLOOD)))
    endings = Counter(chat.ending for chat in asked)
    assert set(endings) <= {Ending.ANSWER, Ending.REFUSED, Ending.LEFT}, endings
    assert all(chat.text == said(8) for chat in asked if chat.ending is Ending.ANSWER)
    for chat in asked:
        if chat.ending is Ending.REFUSED:
            assert chat.status in (429, 503), chat.error
            assert int(chat.headers["retry-after"]) > 0
    assert endings[Ending.ANSWER] > FLOOD / 10
    assert not {"reaped", "retried", "expired", "moved"} & grid.edges().keys()
    assert await grid.chat().ended(10) is Ending.ANSWER


async def test_a_full_queue_turns_away(grid: Grid) -> None:
    """The limit holds to the task, whoever asks at the same time; a place that is free is given."""
    # Engines that stall for as long as this takes are not to be taken for broken ones.
    await _flooded(grid, COGRID_LIMITS_QUEUE_MAX=str(QUEUE), COGRID_LIMITS_IDLE_S="600")
    for engine in grid.engines:
        engine.set(Mode.STALL, after=1)
    running = [grid.chat() for _ in range(8)]
    for chat in running:
        await chat.reaches(1)
    asked = [grid.chat() for _ in range(2 * QUEUE)]
    for chat in asked:
        await chat.let_in(15)
    waiting = [chat for chat in asked if chat.status == 200]
    assert len(waiting) == QUEUE
    for chat in asked:
        if chat.status != 200:
            assert await chat.ended(5) is Ending.REFUSED
            assert chat.status == 429
            assert f"is full: {QUEUE} tasks wait" in chat.error
            assert int(chat.headers["retry-after"]) > 0
    await waiting[0].leave()
    await until_async(lambda: len(grid.events("cancelled")) == 1)
    late = grid.chat()
    assert await late.let_in(15), f"a place is free: {late.status} {late.error}"
    for engine in grid.engines:
        engine.switches.clear()
    for chat in running:
        await chat.leave()
    for chat in waiting[1:]:
        assert await chat.ended(30) is Ending.ANSWER
