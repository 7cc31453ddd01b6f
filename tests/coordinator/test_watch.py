"""What the coordinator logs: a line a request, and what happens to workers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cogrid.model.worker import Offer
from tests.build import NOW_MS, a_snapshot, a_worker
from tests.coordinator.stage import Stage, chat, eventually, stage
from tests.servers import Server

CHAT = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "cogrid")


async def says(caplog: pytest.LogCaptureFixture, text: str) -> str:
    """The first message with this text, as soon as there is one."""

    async def ask() -> str:
        return next((m for m in caplog.messages if text in m), "")

    return await eventually(ask, what=f"the log to say {text}")


async def test_registered_workers_in_the_incidents_words(
    grid: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await eventually(lambda: follows(grid))
    await grid.worker("ai-core", Offer("llama3.2:1b"), Offer("gemma3:1b"))
    line = await says(caplog, "worker_id=ai-core")
    assert line == (
        "[register] worker_id=ai-core models=['llama3.2:1b', 'gemma3:1b']"
        " supports=['cpu_inference']"
    )


async def follows(grid: Stage) -> bool:
    return bool(grid.coordinator.services.watch._last)


async def test_ghosts_and_lost_workers(grid: Stage, caplog: pytest.LogCaptureFixture) -> None:
    watch = grid.coordinator.services.watch
    watch._limits = replace(watch._limits, lease_s=0.0)
    healthy = a_snapshot(a_worker("esxi"), a_worker("ai-core"))
    ghost = a_worker("esxi", polled_at_ms=NOW_MS - 17_200)
    dead = a_worker("ai-core", lease_until_ms=NOW_MS - 1_500)
    watch.compare(healthy, healthy)
    watch.compare(healthy, a_snapshot(ghost, dead))
    watch.compare(healthy, a_snapshot(ghost, dead))
    watch.compare(healthy, healthy)
    said = [m for m in caplog.messages if m.startswith(("[ghost]", "[lost]", "[back]"))]
    assert said == [
        '[ghost] worker_id=esxi evidence="slot free, no claim for 17.2 s"',
        '[lost] worker_id=ai-core evidence="lease ran out 1.5 s ago"',
        "[back] worker_id=esxi",
        "[back] worker_id=ai-core",
    ]


async def test_a_line_a_request(grid: Stage, caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
    await grid.workers["esxi"].answer("Hello")
    task = (await asked).headers["x-cogrid-task"]
    line = await says(caplog, f"task={task}")
    start = (
        f"POST {CHAT} 200 done task={task} model=gemma3:1b queue=tasks:cpu:shared:gemma3:1b"
        " worker=esxi user=127.0.0.1 first="
    )
    assert line.startswith(start)
    assert " tokens=3+2 total=" in line
    await grid.http.post(CHAT, json=chat(model="nope"))
    assert "404 model_not_found model=nope" in await says(caplog, "model_not_found")


async def test_the_access_log_can_be_turned_off(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    from cogrid.config import Coordinator as Settings

    async with stage(server.url, settings=Settings(listen="127.0.0.1:0", access_log=False)) as grid:
        await grid.http.get("/v1/models")
    assert not [m for m in caplog.messages if m.startswith("GET ")]


async def test_figures(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
    await grid.workers["esxi"].answer("Hello")
    await asked
    await grid.http.get("/there/is/nothing")
    text = (await grid.http.get("/metrics")).text
    for line in (
        'cogrid_requests_total{outcome="done",path="/v1/chat/completions"} 1.0',
        'cogrid_requests_total{outcome="not_found",path="other"} 1.0',
        'cogrid_workers{health="healthy"} 1.0',
        'cogrid_tokens_total{kind="completion"} 2.0',
        "cogrid_open_requests 0.0",
    ):
        assert line in text.splitlines(), text
