"""``cogrid chat``, ``route``, ``key`` and ``coordinator run`` as an operator types them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from cogrid.cli.main import run
from cogrid.cli.output import print_piece
from tests.coordinator.stage import Stage, stage
from tests.servers import Server, free_port

WAITING = "domain general · model gemma3:1b · worker esxi · queue tasks:cpu:shared:gemma3:1b"


@pytest.fixture
async def grid(server: Server) -> AsyncIterator[Stage]:
    async with stage(server.url) as made:
        await made.worker()
        yield made


async def cogrid(*words: str) -> int:
    """A command in a thread, so that the coordinator in this loop can answer it."""
    return await asyncio.to_thread(run, list(words))


async def test_chat_streams_and_says_where(grid: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    asked = asyncio.create_task(cogrid("chat", "--url", grid.url, "hello"))
    request = await grid.workers["esxi"].answer("Hel", "lo\n", "\x1b[2Jyou")
    assert await asked == 0
    told = capsys.readouterr()
    assert told.out == "Hello\n\\x1b[2Jyou\n"
    assert told.err.splitlines()[0] == f"{WAITING} · ⏳ waiting, position 1"
    assert told.err.splitlines()[1] == f"{WAITING} · running on esxi"
    assert request.payload["messages"] == [{"role": "user", "content": "hello"}]


async def test_chat_asks_a_worker(grid: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("chat", "--url", grid.url, "--worker", "esxi", "--model", "gemma3:1b", "--json", "hi")
    asked = asyncio.create_task(cogrid(*words))
    await grid.workers["esxi"].answer("Hello")
    assert await asked == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(document["schema"] == 1 for document in documents)
    assert documents[0]["status"].endswith("queue tasks:cpu:esxi · ⏳ waiting, position 1")
    assert {"schema": 1, "text": "Hello"} in documents
    assert documents[-1]["done"]["worker"] == "esxi"


async def test_chat_tells_what_went_wrong(grid: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert await cogrid("chat", "--url", grid.url, "--model", "gemma3:2b", "hi") == 1
    assert "did you mean 'gemma3:1b'" in capsys.readouterr().err
    asked = asyncio.create_task(cogrid("chat", "--url", grid.url, "hi"))
    worker = grid.workers["esxi"]
    task = await worker.take()
    await worker.say(task, "half")
    await worker.fail(task, "gemma3:1b on esxi failed: out of memory")
    assert await asked == 1
    told = capsys.readouterr()
    assert told.out == "half\n"
    assert "cogrid: gemma3:1b on esxi failed: out of memory" in told.err
    assert f"  → cogrid explain {task.id} tells what happened to it" in told.err


async def test_chat_with_a_grid_without_workers_says_where_to_look(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async with stage(server.url) as made:
        assert await cogrid("chat", "--url", made.url, "hi") == 4
        assert "  → cogrid status shows the workers" in capsys.readouterr().err


def test_chat_without_a_coordinator(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chat", "--url", f"http://127.0.0.1:{free_port()}", "hi"]) == 4
    told = capsys.readouterr().err
    assert "cannot be reached" in told
    assert "cogrid up" in told


async def test_route_gives_its_reasons(
    grid: Stage, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await cogrid("route", "--redis", server.url, "--model", "gemma3:1b", "hello") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "model gemma3:1b: as asked" in lines
    assert lines[-1] == ("→ tasks:cpu:shared:gemma3:1b (model gemma3:1b, domain general, by esxi)")
    assert await cogrid("route", "--redis", server.url, "--model", "nope", "--json", "hello") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["queue"] is None
    assert told["error"] == "model 'nope' is not known to this grid"


def test_keys(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--redis", server.url)
    assert run(["key", "list", *at]) == 0
    assert "answers its own machine only" in capsys.readouterr().err
    assert run(["key", "new", "--label", "webui", "--per-minute", "60", "--trusted", *at]) == 0
    told = capsys.readouterr()
    secret = told.out.strip()
    assert secret.startswith("cg-")
    assert run(["key", "list", "--json", *at]) == 0
    (key,) = json.loads(capsys.readouterr().out)["keys"]
    assert (key["label"], key["a_minute"], key["trusted"]) == ("webui", 60, True)
    assert secret not in str(key)
    assert run(["key", "new", "--label", "webui", *at]) == 1
    assert "there is a key 'webui' already" in capsys.readouterr().err
    assert run(["key", "revoke", "webui", *at]) == 0
    assert capsys.readouterr().out == f"revoked {key['id']} (webui)\n"
    assert run(["key", "revoke", "webui", *at]) == 1


def test_a_port_that_is_taken(server: Server) -> None:
    """In a process of its own: a daemon takes the log over."""
    taken = f"127.0.0.1:{server.port}"
    words = ("coordinator", "run", "--listen", taken, "--redis", server.url)
    done = subprocess.run(
        [sys.executable, "-m", "cogrid.cli.main", *words],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"cannot listen on {taken}" in done.stderr


def test_running_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_piece("a\tb\nこ👩‍🔬\r\x9b שלום\u200f\u202e\u2066")
    assert capsys.readouterr().out == "a\tb\nこ👩‍🔬\\r\\x9b שלום\u200f\\u202e\\u2066"
