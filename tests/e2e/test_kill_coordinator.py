"""kill -9 of a coordinator with 50 streams: whoever comes back finds the whole answer at another
coordinator; what nobody comes back for ends by itself."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from cogrid.engine.fault import Mode, Outcome
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import Grid, chats, open_requests, said
from tests.e2e.overlap import scaled
from tests.e2e.rounds import PROOF_LIMIT_S, ROUNDS, in_many_grids
from tests.servers import free_port
from tests.wait import until_async

STREAMS = 50
TOKENS = 20
DELAY_S = 0.05
END_S = 30.0
PATIENT = {"COGRID_LIMITS_IDLE_S": "600"}
ORPHAN_S, SLACK_S = 60.0, 40.0


async def kill_coordinators(grid: Grid, rounds: int) -> None:
    """Two coordinators; the first is killed in every round, the second stays."""
    first = grid.coordinator()
    port = free_port()
    second = f"http://127.0.0.1:{port}"
    grid.coordinator("second", port)
    grid.reaper(patient=True)
    engine = await grid.engine(tokens=TOKENS, delay_s=DELAY_S)
    grid.worker("esxi", engine, slots=STREAMS)
    await grid.up("esxi")
    await until_async(lambda: grid.daemons["second"].lines("listening on"))
    chance, refused = random.Random(rounds), 0
    for number in range(rounds):
        if number % 4 == 3:
            # Some are killed while all of them still wait for their first token.
            engine.set(Mode.SLOW_FIRST, seconds=1)
        asked = [grid.chat(stream=n % 5 != 0, ollama=n % 2 == 0) for n in range(STREAMS)]
        await _settled(grid, asked, len(grid.events("submitted")))
        await asyncio.sleep(chance.uniform(0, TOKENS * DELAY_S))
        first.kill()
        first.start()
        engine.switches.clear()
        ends = (_comes_to_an_end(grid, chat, second, n) for n, chat in enumerate(asked))
        refused += sum(await asyncio.gather(*ends))
        await grid.up("esxi")
    await grid.at_rest((ORPHAN_S + SLACK_S) * grid.scale)
    edges = grid.edges()
    assert rounds * STREAMS - refused <= edges["submitted"] <= rounds * STREAMS
    assert edges["submitted"] == edges["done"] + edges["cancelled"]
    # Only where nobody came back for so long that the grid gave it up.
    assert edges["cancelled"] < edges["done"]
    assert refused < rounds * STREAMS / 50, "submits are not acknowledged in time"
    assert not {"failed", "reaped", "repaired", "retried"} & edges.keys(), edges


async def _settled(grid: Grid, asked: list[Chat], before: int) -> None:
    """Each of them is a task, or was refused."""

    def settled() -> bool:
        refused = sum(chat.status >= 400 for chat in asked)
        return len(grid.events("submitted")) - before + refused >= STREAMS

    await until_async(settled)


async def _comes_to_an_end(grid: Grid, chat: Chat, second: str, number: int) -> bool:
    """One that was cut off comes back, or never; True for one that was not accepted."""
    ending = await chat.ended(END_S)
    if ending is Ending.REFUSED:
        assert chat.status == 503, chat.error
        return True
    assert chat.text == said(TOKENS) if ending is Ending.ANSWER else ending is Ending.BROKEN
    assert said(TOKENS).startswith(chat.text)
    if chat.task and number % 2 and ending is Ending.BROKEN:
        assert await _rest(grid, f"{second}/task/{chat.task}/events") == said(TOKENS)
    return False


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


@scaled
async def test_nobody_comes_back(grid: Grid) -> None:
    """50 streams without an end, whose coordinator dies and is not replaced: after orphan_grace
    all are cancelled, and the engine is let go."""
    coordinator = grid.coordinator()
    grid.reaper(patient=True)
    engine = await grid.engine()
    grid.worker("esxi", engine, slots=STREAMS // 2, env=PATIENT)
    await grid.up("esxi")
    engine.set(Mode.STALL, after=3)
    asked = [grid.chat(ollama=n % 2 == 0) for n in range(STREAMS)]
    await until_async(lambda: sum(chat.tokens == 3 for chat in asked) == STREAMS // 2, 20)
    coordinator.kill()
    killed_ms = grid.now_ms()
    assert {await chat.ended(5) for chat in asked} == {Ending.BROKEN}
    await grid.at_rest((ORPHAN_S + SLACK_S) * grid.scale)
    ends = grid.events("cancelled")
    assert len(ends) == STREAMS
    assert {event.reason for event in ends} == {"orphaned"}
    # The lease of a client is renewed every client_renew_s, a twelfth of orphan_grace.
    first_s = (min(event.at_ms for event in ends) - killed_ms) / 1000
    assert ORPHAN_S * 11 / 12 * grid.scale - 0.5 < first_s
    # Those that wait go first; one whose lease has a moment left may still be taken.
    assert grid.edges()["claimed"] < STREAMS * 3 // 4
    await until_async(lambda: not open_requests(engine))
    assert {record.outcome for record in chats(engine)} == {Outcome.ABORTED}


@scaled
async def test_twenty_times(grid: Grid) -> None:
    await kill_coordinators(grid, ROUNDS)


@pytest.mark.e2e
@pytest.mark.proof
@pytest.mark.timeout(PROOF_LIMIT_S)
async def test_two_hundred_times(tmp_path: Path) -> None:
    await in_many_grids(tmp_path, kill_coordinators, grids=2)
