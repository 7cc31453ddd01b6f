"""Rough treatment of one part while requests flow: restarts in a row, clocks that jump, rights that
are taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import Grid, said
from tests.wait import until_async

pytestmark = pytest.mark.e2e

RESTARTS = 20
SLACK_S = 20.0
CLOCK = """
import os, time

_real, _file = time.time, os.environ["JUMP"]

def _jumped():
    return _real() + float(open(_file).read() or 0)

time.time = _jumped
time.time_ns = lambda: int(_jumped() * 1e9)
"""


async def _while_asked(grid: Grid, treat: Callable[[], Awaitable[None]]) -> list[Chat]:
    """Four clients ask, one request after another, until the treatment is over."""
    over = asyncio.Event()
    asked: list[Chat] = []

    async def client(number: int) -> None:
        while not over.is_set():
            chat = grid.chat(stream=number < 2, ollama=number % 2 == 0)
            asked.append(chat)
            await chat.ended(60 * grid.scale + 2 * SLACK_S)

    clients = [asyncio.create_task(client(number)) for number in range(4)]
    try:
        await treat()
    finally:
        over.set()
        await asyncio.gather(*clients)
    return asked


async def _at_least(count: int, now: Callable[[], int]) -> None:
    await until_async(lambda: now() >= count, SLACK_S, f"{count} of them")


async def test_a_worker_restarted_twenty_times(grid: Grid) -> None:
    """By SIGTERM and by kill -9 in turn, with another one beside it. What a client has seen text of
    may break off; everything else is answered, and by SIGTERM nothing is lost at all."""
    grid.coordinator()
    grid.reaper()
    for name in ("esxi", "ai-core"):
        grid.worker(name, await grid.engine(delay_s=0.01), slots=2)
    await grid.up("esxi", "ai-core")
    esxi = grid.daemons["esxi"]

    async def restart() -> None:
        for number in range(1, RESTARTS + 1):
            if number % 2:
                assert await esxi.stop(SLACK_S) == 0
            else:
                esxi.kill()
            esxi.start()
            await _at_least(number + 1, lambda: len(esxi.lines("[register]")))

    asked = await _while_asked(grid, restart)
    kills = RESTARTS // 2
    broken = [chat for chat in asked if chat.ending is not Ending.ANSWER]
    assert len(broken) <= kills * 2, [(chat.ending, chat.error) for chat in broken]
    for chat in broken:
        assert chat.ending is Ending.ERROR
        assert "broke off on worker esxi" in chat.error
        assert chat.text, "nothing was sent yet: it should have run again"
    assert all(chat.text == said(8) for chat in asked if chat.ending is Ending.ANSWER)
    assert not grid.events("handed_back")


async def test_a_clock_that_jumps(grid: Grid, tmp_path: Path) -> None:
    """A worker's own clock goes an hour forth and a day back: nobody notices."""
    hook, file = tmp_path / "hook", tmp_path / "jump"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(CLOCK)
    file.write_text("0")
    env = {"PYTHONPATH": str(hook), "JUMP": str(file)}
    grid.coordinator(env=env)
    grid.reaper()
    grid.worker("esxi", await grid.engine(delay_s=0.01), slots=4, env=env)
    await grid.up("esxi")

    async def jump() -> None:
        for seconds in (3600, -86400, 0, -5, 1e6, 0):
            file.write_text(str(seconds))
            await _at_least(len(grid.events("done")) + 8, lambda: len(grid.events("done")))

    asked = await _while_asked(grid, jump)
    assert all(chat.ending is Ending.ANSWER and chat.text == said(8) for chat in asked)
    assert not {"reaped", "moved", "hello_again", "handed_back", "retried"} & grid.edges().keys()
    assert len(grid.events("hello")) == 1
    assert grid.health("esxi") in ("healthy", "busy")


async def test_rights_that_are_taken_away(grid: Grid) -> None:
    """The user of the daemons loses the right to write hashes, and gets it back: said once by each,
    nothing half done, and what ran goes on."""
    grid.redis.execute_command("ACL", "SETUSER", "cogrid", "on", ">secret", "~*", "+@all")
    url = f"redis://cogrid:secret@127.0.0.1:{grid.server.port}/0"
    grid.coordinator(redis=url)
    grid.reaper(redis=url)
    engine = await grid.engine(tokens=100, delay_s=0.03)
    grid.worker("esxi", engine, redis=url)
    await grid.up("esxi")
    running = grid.chat()
    await running.reaches(5)
    waiting = grid.chat(max_tokens=8)
    await waiting.accepted()
    before = {name: len(daemon.log.splitlines()) for name, daemon in grid.daemons.items()}
    for right in ("hset", "xadd"):
        grid.redis.execute_command("ACL", "SETUSER", "cogrid", f"-{right}")
        turned_away = grid.chat(stream=False, max_tokens=8)
        assert await turned_away.ended(SLACK_S) is Ending.REFUSED
        assert turned_away.status == 503
        assert "does not allow this to our user" in turned_away.error
        await grid.daemons["esxi"].says("[redis] lost", "does not allow", within_s=SLACK_S)
        grid.redis.execute_command("ACL", "SETUSER", "cogrid", f"+{right}")
        await until_async(lambda: grid.poll_age_s("esxi") < grid.scale, SLACK_S, "a claim")
    assert await running.ended(SLACK_S) is Ending.ANSWER
    assert running.text == said(100)
    assert await waiting.ended(SLACK_S) is Ending.ANSWER
    assert not {"reaped", "moved", "retried", "repaired"} & grid.edges().keys()
    for name, daemon in grid.daemons.items():
        lines = [line for line in daemon.log.splitlines()[before[name] :] if " POST " not in line]
        assert len(lines) <= 12, "\n".join((name, *lines))
