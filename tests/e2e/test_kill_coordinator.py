"""kill -9 of a coordinator with 50 streams: whoever comes back finds the whole answer at another
coordinator; what nobody comes back for ends by itself."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from cogrid.engine.fault import Mode
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import Grid, said
from tests.e2e.rounds import PROOF_LIMIT_S, ROUNDS, in_many_grids
from tests.servers import free_port
from tests.wait import until_async

pytestmark = pytest.mark.e2e

STREAMS = 50
TOKENS = 20
DELAY_S = 0.05
END_S = 30.0


async def kill_coordinators(grid: Grid, rounds: int) -> None:
    """Two coordinators; the first is killed in every round, the second stays."""
    first = grid.coordinator()
    port = free_port()
    second = f"http://127.0.0.1:{port}"
    grid.coordinator("second", port)
    grid.reaper()
    engine = await grid.engine(tokens=TOKENS, delay_s=DELAY_S)
    grid.worker("esxi", engine, slots=STREAMS)
    await grid.up("esxi")
    await until_async(lambda: grid.daemons["second"].lines("listening on"))
    chance = random.Random(rounds)
    for number in range(rounds):
        if number % 4 == 3:
            # Some are killed while all of them still wait for their first token.
            engine.set(Mode.SLOW_FIRST, seconds=1)
        asked = [grid.chat(stream=n % 5 != 0, ollama=n % 2 == 0) for n in range(STREAMS)]
        await _submitted(grid, (number + 1) * STREAMS)
        await asyncio.sleep(chance.uniform(0, TOKENS * DELAY_S))
        first.kill()
        first.start()
        engine.switches.clear()
        ends = (_comes_to_an_end(grid, chat, second, n) for n, chat in enumerate(asked))
        await asyncio.gather(*ends)
        await grid.up("esxi")
    edges = grid.edges()
    assert edges["submitted"] == rounds * STREAMS
    assert edges["submitted"] == edges["done"] + edges["cancelled"]
    assert not {"failed", "reaped", "repaired", "retried"} & edges.keys(), edges


async def _submitted(grid: Grid, count: int) -> None:
    await until_async(lambda: len(grid.events("submitted")) >= count)


async def _comes_to_an_end(grid: Grid, chat: Chat, second: str, number: int) -> None:
    """One that was cut off comes back, with its place in the log, or never."""
    ending = await chat.ended(END_S)
    if ending is Ending.ANSWER:
        assert chat.text == said(TOKENS)
        return
    assert ending is Ending.BROKEN, f"{ending} {chat.error}"
    assert said(TOKENS).startswith(chat.text)
    if chat.task and number % 2:
        assert await _rest(grid, f"{second}/task/{chat.task}/events") == said(TOKENS)


async def _rest(grid: Grid, url: str) -> str:
    """The answer as it stands in the log, read in two parts."""
    text, last_id, ended = "", "", 0
    while not ended:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        async with grid.http.stream("GET", url, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            event = ""
            async for line in response.aiter_lines():
                name, _, said_ = line.partition(": ")
                if name == "id":
                    last_id = said_
                elif name == "event":
                    event = said_
                    ended += event == "end"
                elif name == "data" and event == "text":
                    text += json.loads(said_)["content"]
                    if text.count(" ") == 1:
                        break
    assert ended == 1
    return text


@pytest.mark.timeout(300)
async def test_twenty_times(grid: Grid) -> None:
    await kill_coordinators(grid, ROUNDS)


@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_two_hundred_times(tmp_path: Path) -> None:
    await in_many_grids(tmp_path, kill_coordinators, grids=2)
