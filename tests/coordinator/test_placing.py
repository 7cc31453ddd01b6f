"""Where requests go: domains, workers by name, affinity, bands, admission, as HTTP shows it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from cogrid.config import Coordinator as Settings
from cogrid.coordinator.affinity import Affinity
from cogrid.model.worker import Offer, WorkerState
from cogrid.rules.domain import Domain
from cogrid.rules.route import Routing
from tests.coordinator.script import ScriptedWorker
from tests.coordinator.stage import LIMITS, MODEL, Stage, chat, events, eventually, stage
from tests.servers import Server

CHAT = "/v1/chat/completions"
TITLE = "### Task:\nGenerate a concise title"


async def test_auto_finds_the_domain_and_its_model(server: Server) -> None:
    rules = (
        Domain("japanese", languages=("ja",), models=("lfm-jp",)),
        Domain("code", words=("python",), models=("coder", MODEL)),
        Domain("general", models=(MODEL,)),
    )
    async with stage(server.url, routing=Routing(rules)) as grid:
        worker = await grid.worker("esxi", Offer(MODEL), Offer("lfm-jp"))
        for words, domain, model in (
            ("日本の首都はどこですか", "japanese", "lfm-jp"),
            ("write Python", "code", MODEL),
            ("hello", "general", MODEL),
        ):
            asked = asyncio.create_task(grid.http.post(CHAT, json=chat(words, model="auto")))
            request = await worker.answer("x")
            answer = await asked
            assert request.model == request.payload["model"] == model
            assert answer.headers["x-cogrid-domain"] == domain
            assert answer.json()["model"] == model
        ids = [model["id"] for model in (await grid.http.get("/v1/models")).json()["data"]]
        assert ids == ["auto", MODEL, "lfm-jp"]


async def test_a_named_model_keeps_its_name(grid: Stage) -> None:
    name = "hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"
    worker = await grid.worker("ai-core", Offer(name), Offer("qwen3"))
    for shown, model in ((name, name), ("qwen3:latest", "qwen3")):
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat(model=shown)))
        request = await worker.answer("x")
        answer = await asked
        assert request.model == model
        assert answer.json()["model"] == shown
        assert answer.headers["x-cogrid-model"] == model
    assert (await grid.http.get(f"/v1/models/{name}")).json()["id"] == name


async def test_a_worker_by_name(grid: Stage) -> None:
    await grid.worker("ai-core")
    headers = {"X-Cogrid-Worker": "ai-core"}
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat(), headers=headers))
    await grid.workers["ai-core"].answer("x")
    assert (await asked).headers["x-cogrid-queue"] == "tasks:cpu:ai-core"
    refused = await grid.http.post(CHAT, json=chat(), headers={"X-Cogrid-Worker": "ai-cor"})
    assert refused.status_code == 404
    error = refused.json()["error"]
    assert error["code"] == "worker_not_found"
    assert error["message"] == (
        "worker 'ai-cor' is not known to this grid; did you mean 'ai-core'?"
    )
    refused = await grid.http.post("/task", json={"request": chat(), "worker": "nobody"})
    assert refused.status_code == 404


def conversation(*said: str) -> dict[str, Any]:
    """A chat in which user and model take turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
    return {"model": MODEL, "messages": messages}


async def queue_of(grid: Stage, body: dict[str, Any], worker: str) -> str:
    """The queue of a request that this worker then answers."""
    asked = asyncio.create_task(grid.http.post(CHAT, json=body))
    await grid.workers[worker].answer("x")
    return (await asked).headers["x-cogrid-queue"]


async def test_a_conversation_goes_on_where_it_was(grid: Stage) -> None:
    await grid.worker("ai-core", slots=1)
    shared = f"tasks:cpu:shared:{MODEL}"
    assert await queue_of(grid, conversation("hi"), "ai-core") == shared
    refresh = grid.refresh
    await refresh()
    assert await queue_of(grid, conversation("hi", "x", "more"), "ai-core") == "tasks:cpu:ai-core"
    assert await queue_of(grid, conversation("ho", "x", "more"), "esxi") == shared
    # Its one slot is taken: whoever is free.
    held = asyncio.create_task(grid.http.post(CHAT, json=chat("other"), headers=by("ai-core")))
    task = await grid.workers["ai-core"].take()
    await refresh()
    assert await queue_of(grid, conversation("hi", "x", "more"), "esxi") == shared
    await grid.workers["ai-core"].done(task)
    await held


def by(worker: str) -> dict[str, str]:
    return {"X-Cogrid-Worker": worker}


async def test_affinity_does_not_pile_up_between_two_snapshots(server: Server) -> None:
    limits = replace(LIMITS, tick_s=30.0)
    async with stage(server.url, limits=limits) as grid:
        worker = await grid.worker(slots=2)
        first = asyncio.create_task(grid.http.post(CHAT, json=conversation("hi")))
        await worker.answer("x")
        await first
        await grid.refresh()
        going_on = conversation("hi", "x", "more")
        asked = [asyncio.create_task(grid.http.post(CHAT, json=going_on)) for _ in range(4)]
        for _ in asked:
            await worker.answer("x")
        queues = sorted([(await one).headers["x-cogrid-queue"] for one in asked])
        assert queues == ["tasks:cpu:esxi"] * 2 + [f"tasks:cpu:shared:{MODEL}"] * 2


def test_affinity_is_bounded() -> None:
    affinity = Affinity(2)
    for key, worker in ((1, "a"), (2, "b"), (1, "c"), (3, "d")):
        affinity.served(key, worker)
    assert [affinity.worker(key) for key in (1, 2, 3)] == ["c", "", "d"]


@pytest.mark.parametrize("path", [CHAT, "/api/chat"])
async def test_a_title_does_not_delay_the_chat_that_it_belongs_to(grid: Stage, path: str) -> None:
    worker = grid.workers["esxi"]
    title = asyncio.create_task(grid.http.post(path, json=chat(TITLE, stream=False)))
    talk = asyncio.create_task(grid.http.post(path, json=chat("hello", stream=True)))
    first = await worker.take()
    await eventually(lambda: depth(grid, 1))
    assert b"hello" in first.body
    await worker.done(first)
    request = await worker.answer("a title")
    assert request.payload["messages"][0]["content"] == TITLE
    assert {(await title).status_code, (await talk).status_code} == {200}


async def depth(grid: Stage, count: int) -> bool:
    queue = grid.store.keys.queue(f"tasks:cpu:shared:{MODEL}")
    return int(await grid.call("ZCARD", queue)) == count


async def test_background_by_header(grid: Stage) -> None:
    headers = {"X-Owui-Task": "tags_generation"}
    background = asyncio.create_task(grid.http.post(CHAT, json=chat("tags"), headers=headers))
    task = await grid.pending()
    found = await grid.task(task)
    assert found is not None
    assert found.band == 1
    await grid.workers["esxi"].answer("x")
    await background


async def test_a_model_without_a_home_is_503_and_an_unknown_one_404(grid: Stage) -> None:
    await grid.workers["esxi"].renew(WorkerState.DRAINING)
    await grid.refresh()
    for path in (CHAT, "/api/chat"):
        answer = await grid.http.post(path, json=chat())
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) == 10
        assert f"no worker can serve model '{MODEL}' now (esxi: draining)" in answer.text
        assert (await grid.http.post(path, json=chat(model="nope"))).status_code == 404


async def test_a_worker_that_has_just_come_is_seen_at_once(server: Server) -> None:
    """Between two ticks: a snapshot that says no is read again, unless it was read just now."""
    async with stage(server.url, limits=replace(LIMITS, tick_s=2.0)) as grid:
        registry = grid.coordinator.services.registry
        worker = ScriptedWorker(grid.store)
        await worker.register()
        assert registry.snapshot is not None
        assert registry.snapshot.workers == ()

        async def stale() -> bool:
            return time.monotonic() - registry._read_at > 0.3

        await eventually(stale)
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat()))
        await worker.answer("x")
        assert (await asked).status_code == 200


async def test_a_grid_that_has_just_started_is_503(server: Server) -> None:
    async with stage(server.url) as grid:
        answer = await grid.http.post(CHAT, json=chat())
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "grid_starting"


async def test_a_full_queue_is_429(server: Server) -> None:
    async with stage(server.url, limits=replace(LIMITS, queue_max=2, tick_s=30.0)) as grid:
        worker = await grid.worker()
        asked = [asyncio.create_task(grid.http.post(CHAT, json=chat())) for _ in range(2)]
        await eventually(lambda: depth(grid, 2))
        answer = await grid.http.post(CHAT, json=chat())
        assert answer.status_code == 429
        assert answer.json()["error"]["code"] == "queue_full"
        assert int(answer.headers["retry-after"]) >= 1
        for _ in asked:
            await worker.answer("x")
        assert {(await one).status_code for one in asked} == {200}


async def test_large_bodies_go_beside_the_submit(grid: Stage) -> None:
    words = "x" * 200_000
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat(words)))
    request = await grid.workers["esxi"].answer("x")
    assert request.payload["messages"][0]["content"] == words
    assert (await asked).status_code == 200


@pytest.mark.parametrize(
    ("settings", "headers", "done"),
    [
        (Settings(listen="127.0.0.1:0"), {}, None),
        (Settings(listen="127.0.0.1:0"), {"X-OpenWebUI-Chat-Id": "1"}, {"done": True}),
        (
            Settings(listen="127.0.0.1:0"),
            {"X-OpenWebUI-Chat-Id": "1", "X-Cogrid-Status": "0"},
            None,
        ),
        (Settings(listen="127.0.0.1:0", status_line="always"), {}, {"done": True}),
        (
            Settings(listen="127.0.0.1:0", status_line="never"),
            {"X-OpenWebUI-Chat-Id": "1", "X-Cogrid-Status": "1"},
            None,
        ),
        (
            Settings(listen="127.0.0.1:0", status_stays=False),
            {"X-Cogrid-Status": "1"},
            {"done": True, "hidden": True},
        ),
    ],
)
async def test_who_gets_status_frames(
    server: Server, settings: Settings, headers: dict[str, str], done: dict[str, bool] | None
) -> None:
    async with stage(server.url, settings=settings) as grid:
        worker = await grid.worker()
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True), headers=headers))
        await worker.answer("x")
        said = [chunk["event"]["data"] for chunk in events((await asked).text) if "event" in chunk]
        if done is None:
            assert said == []
        else:
            said[-1].pop("description")
            assert said[-1] == done
