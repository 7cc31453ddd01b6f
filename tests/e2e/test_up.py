"""``cogrid up`` keeps the whole grid running, whichever part of it is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import needs
from tests.e2e.chat import Chat, Ending
from tests.e2e.daemon import Daemon
from tests.servers import VALKEY9, free_port
from tests.wait import until_async

pytestmark = pytest.mark.e2e

BACK_S = 30.0
NAMES = {
    "the server": "valkey-server",
    "the coordinator": "coordinator run",
    "worker demo-1": "demo-1",
    "worker demo-2": "demo-2",
}


class Up:
    """A grid of one command, and its parts by what they are called on their command line."""

    def __init__(self, daemon: Daemon, client: httpx.AsyncClient) -> None:
        self.daemon = daemon
        self._client = client

    def part(self, words: str) -> int:
        """The process id of the child with these words, 0 where there is none."""
        children = Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text()
        return next((pid for pid in map(int, children.split()) if words in _command(pid)), 0)

    async def answers(self, within_s: float = BACK_S) -> None:
        """A chat is answered in that time; until then it may be refused."""

        async def ask() -> bool:
            body = {"model": "demo-echo", "messages": [{"role": "user", "content": "hello"}]}
            chat = Chat(self._client, "/v1/chat/completions", body, {})
            return await chat.ended(within_s) is Ending.ANSWER

        await until_async(ask, within_s, "an answer")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    """A demonstration, answering."""
    needs(VALKEY9)
    address = f"127.0.0.1:{free_port()}"
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COGRID_")}
    env = {
        **kept,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "COGRID_COORDINATOR_LISTEN": address,
        "COGRID_TIME_SCALE": os.environ["COGRID_TIME_SCALE"],
    }
    daemon = Daemon("up", ("up", "--demo"), env, tmp_path)
    daemon.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://{address}", timeout=None) as client:
            one = Up(daemon, client)
            await one.answers()
            yield one
    finally:
        daemon.end()
        print(daemon.tail)


@pytest.mark.parametrize("part", NAMES)
async def test_a_killed_part_comes_back(up: Up, part: str) -> None:
    """kill -9 of one: it is started again, and the grid answers."""
    words = NAMES[part]
    before = up.part(words)
    os.kill(before, signal.SIGKILL)
    await until_async(lambda: up.part(words) not in (0, before), BACK_S, f"{part} to be back")
    await up.answers()
    assert await up.daemon.stop(BACK_S) == 0


async def test_nothing_is_left_of_a_killed_one(up: Up) -> None:
    """kill -9 of the command itself: all its children go with it; the next one finds its data and
    answers."""
    children = [up.part(words) for words in NAMES.values()]
    assert all(children)
    up.daemon.kill()
    await until_async(lambda: not any(map(_command, children)), BACK_S, "its children to end")
    up.daemon.start()
    await up.answers()
    assert await up.daemon.stop(BACK_S) == 0
