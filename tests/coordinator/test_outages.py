"""Redis goes and comes back, is emptied, hangs; the coordinator itself is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.live import Live
from cogrid.model.task import State
from cogrid.store.clients import Followed
from cogrid.store.output import START
from cogrid.store.refusal import silence
from cogrid.store.script import Call
from tests.coordinator.stage import LIMITS, Stage, chat, content, events, eventually, lines, stage
from tests.engine import wire
from tests.proxy import Proxy
from tests.servers import Server, free_port

CHAT = "/v1/chat/completions"


async def test_a_stream_waits_for_redis_and_goes_on(server: Server) -> None:
    proxy = Proxy(str(server.socket_path))
    async with stage(f"redis://127.0.0.1:{proxy.port}/0") as grid, stage(server.url) as direct:
        worker = await direct.worker()
        await grid.refresh()
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
        task = await worker.take()
        await worker.say(task, "before ")
        proxy.cut(refuse=True)
        await worker.say(task, "meanwhile ")
        refused = await grid.http.post(CHAT, json=chat())
        assert refused.status_code == 503
        assert "cannot be reached" in refused.json()["error"]["message"]
        assert refused.json()["error"]["code"] == "store_unreachable"
        assert int(refused.headers["retry-after"]) > 0
        assert (await grid.http.get("/healthz")).status_code == 200
        assert (await grid.http.get("/readyz")).status_code == 503
        assert not asked.done()
        proxy.heal()
        await worker.say(task, "after")
        await worker.done(task)
        chunks = events((await asked).text)
        assert content(chunks[:-1]) == "before meanwhile after"
        assert chunks[-1] == "[DONE]"
        await eventually(lambda: ready(grid))
    proxy.close()


async def ready(grid: Stage) -> bool:
    return (await grid.http.get("/readyz")).status_code == 200


async def test_an_emptied_redis_is_an_error_and_no_hang(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    ndjson = asyncio.create_task(grid.http.post("/api/chat", json=chat(stream=False)))
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
    for _ in range(2):
        await worker.say(await worker.take(), "half")
    await grid.call("FLUSHALL")
    chunks = events((await asked).text)
    assert chunks[-1]["error"]["code"] == "lost"
    assert "is gone from Redis" in chunks[-1]["error"]["message"]
    assert (await ndjson).status_code == 502


async def test_a_lost_hint_costs_one_renewal(grid: Stage) -> None:
    """The log has an entry of which nobody was told."""
    worker = grid.workers["esxi"]
    asked = asyncio.create_task(grid.http.post(CHAT, json=chat()))
    task = await worker.take()
    await grid.call("HSET", grid.store.keys.task(task.id), "followers", "")
    await worker.say(task, "unheard")
    await worker.done(task)
    answer = await asyncio.wait_for(asked, 5 * LIMITS.client_renew_s)
    assert answer.json()["choices"][0]["message"]["content"] == "unheard"


async def test_a_grid_without_redis_says_so() -> None:
    async with stage(f"redis://127.0.0.1:{free_port()}/0") as grid:
        for path in ("/v1/models", "/api/tags", "/workers"):
            answer = await grid.http.get(path)
            assert answer.status_code == 503
            assert "cannot be reached" in answer.text
        assert (await grid.http.post(CHAT, json=chat())).status_code == 503
        assert (await grid.http.get("/healthz")).status_code == 200


async def test_it_listens_at_once_where_redis_takes_everything_and_says_nothing() -> None:
    """A black hole takes eight seconds to be sure of; a client is told before that."""
    async with wire.server(wire.silent) as url:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with stage(url.replace("http://", "redis://")) as grid:
            assert (await grid.http.get("/healthz")).status_code == 200
            answer = await grid.http.post(CHAT, json=chat())
            assert loop.time() - began < 3
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert (await grid.http.get("/readyz")).status_code == 503


async def test_a_hanging_redis_is_not_waited_for(own_server: Callable[..., Server]) -> None:
    server = own_server()
    async with stage(server.url) as grid:
        await grid.worker()
        server.pause()
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await grid.http.post(CHAT, json=chat())
        assert answer.status_code == 503
        assert loop.time() - began < 2.5 * LIMITS.submit_timeout_s
        server.resume()
        await eventually(lambda: nothing_open(grid), 2 * LIMITS.orphan_grace_s)


async def nothing_open(grid: Stage) -> bool:
    return not await grid.call("ZCARD", grid.store.keys.due)


@pytest.mark.parametrize("path", ["/task", CHAT])
async def test_a_kept_task_that_was_never_acknowledged_is_taken_back(
    grid: Stage, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its client was told 503, and it has no client's lease that would end it."""
    store = grid.coordinator.services.store
    do = store.do

    async def deaf(call: Call[Any]) -> Any:
        done = await do(call)
        if call.name == "submit":
            raise silence(store.shown, "the connection was closed")
        return done

    monkeypatch.setattr(store, "do", deaf)
    body = {"request": chat()} if path == "/task" else chat()
    answer = await grid.http.post(path, json=body, headers={"X-Cogrid-On-Close": "keep"})
    assert answer.status_code == 503
    await eventually(lambda: nothing_open(grid))
    assert int(await grid.call("HGET", grid.store.keys.totals, "submitted")) == 1
    assert int(await grid.call("HGET", grid.store.keys.totals, "cancelled")) == 1


@pytest.mark.parametrize("path", ["/task", CHAT])
async def test_a_kept_task_that_arrives_after_its_withdrawal_does_not_run(
    grid: Stage, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Its bytes were on the way while the client was told 503."""
    store = grid.coordinator.services.store
    do, late = store.do, list[Call[Any]]()

    async def slow(call: Call[Any]) -> Any:
        if call.name != "submit":
            return await do(call)
        late.append(call)
        raise silence(store.shown, "the connection was closed")

    monkeypatch.setattr(store, "do", slow)
    headers = {"X-Cogrid-On-Close": "keep", "Idempotency-Key": "k"}
    body = {"request": chat()} if path == "/task" else chat()
    answer = await grid.http.post(path, json=body, headers=headers)
    assert answer.status_code == 503
    await eventually(lambda: all_told(grid))
    for call in late:
        assert (await do(call)).status == "withdrawn"
    assert await nothing_open(grid)
    monkeypatch.undo()
    again = asyncio.create_task(grid.http.post(path, json=body, headers=headers))
    await grid.workers["esxi"].answer("at last")
    assert (await again).is_success


async def all_told(grid: Stage) -> bool:
    return not grid.coordinator.services.departures._telling


@pytest.mark.parametrize("silent", [True, False])
async def test_a_submit_whose_answer_is_lost_is_one_task(
    grid: Stage, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    """The server does it, and the coordinator never learns: it asks again under the same id."""
    store = grid.coordinator.services.store
    asked: list[str] = []
    do = store.do

    async def deaf(call: Call[Any]) -> Any:
        done = await do(call)
        if call.name == "submit":
            asked.append(call.key)
            if len(asked) == 1 and silent:
                await asyncio.sleep(60)
            if len(asked) == 1:
                raise silence(store.shown, "the connection was closed")
        return done

    monkeypatch.setattr(store, "do", deaf)
    request = asyncio.create_task(grid.http.post(CHAT, json=chat()))
    await grid.workers["esxi"].answer("once")
    answer = await request
    assert answer.json()["choices"][0]["message"]["content"] == "once"
    assert len(asked) == 2
    assert asked[0] == asked[1]
    assert int(await grid.call("HGET", grid.store.keys.totals, "submitted")) == 1


async def test_sigterm_lets_streams_end_and_then_ends_them(server: Server) -> None:
    async with stage(server.url, grace_s=0.5) as grid:
        worker = await grid.worker()
        good = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
        first = await worker.take()
        bad = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True)))
        second = await worker.take()
        ndjson = asyncio.create_task(grid.http.post("/api/chat", json=chat(stream=False)))
        await worker.take()
        stopping = asyncio.create_task(grid.stop())
        await worker.say(first, "in time")
        await worker.done(first)
        await worker.say(second, "half")
        chunks = events((await good).text)
        assert content(chunks[:-1]) == "in time"
        assert chunks[-1] == "[DONE]"
        chunks = events((await bad).text)
        assert chunks[-1]["error"]["code"] == "shutting_down"
        assert (await ndjson).status_code == 503
        await stopping
        await grid.state(second.id, "cancelled")
        with pytest.raises(httpx.ConnectError):
            await grid.http.get("/healthz")


async def test_another_coordinator_goes_on_with_a_task(server: Server) -> None:
    async with stage(server.url) as grid, stage(server.url) as other:
        worker = await grid.worker()
        headers = {"Idempotency-Key": "k"}
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat(stream=True), headers=headers))
        task = await worker.take()
        await worker.say(task, "first ")
        asked.cancel()
        again = asyncio.create_task(other.http.post(CHAT, json=chat(stream=True), headers=headers))
        await eventually(lambda: follows(other, task.id))
        await worker.say(task, "second")
        await worker.done(task)
        assert content(events((await again).text)[:-1]) == "first second"


async def follows(grid: Stage, task: str) -> bool:
    return task in grid.coordinator.services.live._by_task


# What renew-clients answers, against what a follower has.


def live(grid: Stage) -> Live:
    return grid.coordinator.services.live


async def test_a_log_that_went_back_is_read_again_where_nothing_was_said(grid: Stage) -> None:
    follower = live(grid).follow("t1", "5-3")  # type: ignore[arg-type]
    follower.accepted = True
    assert live(grid)._compare(follower.task, Followed("pending", "4-9")) is True
    assert follower.last_id == START
    live(grid).unfollow(follower)


async def test_a_log_that_went_back_behind_what_was_said_is_an_error(grid: Stage) -> None:
    follower = live(grid).follow("t1", "5-3")  # type: ignore[arg-type]
    follower.accepted = follower.said = True
    assert live(grid)._compare(follower.task, Followed("pending", "4-9")) is False
    with pytest.raises(RefusedError, match="has lost text of task t1 that you have"):
        await follower.next(1)
    live(grid).unfollow(follower)


async def test_a_log_that_went_back_under_a_run_is_waited_for(grid: Stage) -> None:
    """The worker keeps the run's text and sends it again."""
    follower = live(grid).follow("t1", "5-3")  # type: ignore[arg-type]
    follower.accepted = follower.said = True
    assert live(grid)._compare(follower.task, Followed("running", "5-1")) is False
    assert await follower.next(0.01) == []
    assert follower.last_id == "5-3"
    live(grid).unfollow(follower)


@pytest.mark.parametrize("state", [State.DONE, State.CANCELLED])
async def test_an_ended_task_without_its_end_is_an_error(grid: Stage, state: State) -> None:
    follower = live(grid).follow("t1", "5-3")  # type: ignore[arg-type]
    follower.accepted = True
    live(grid)._compare(follower.task, Followed(state, "5-3"))
    with pytest.raises(RefusedError, match="no longer in Redis"):
        await follower.next(1)
    live(grid).unfollow(follower)


async def test_a_task_that_is_not_yet_there_is_no_lost_one(grid: Stage) -> None:
    follower = live(grid).follow("t1")  # type: ignore[arg-type]
    live(grid)._compare(follower.task, Followed("", ""))
    assert await follower.next(0.01) == []
    live(grid).unfollow(follower)


async def test_leases_move_on_while_somebody_listens(server: Server) -> None:
    limits = replace(LIMITS, orphan_grace_s=1.0, client_renew_s=0.1)
    async with stage(server.url, limits=limits) as grid:
        worker = await grid.worker()
        asked = asyncio.create_task(grid.http.post(CHAT, json=chat()))
        task = await grid.pending()
        first = float(await grid.call("ZSCORE", grid.store.keys.clients, task))

        async def later() -> bool:
            return float(await grid.call("ZSCORE", grid.store.keys.clients, task)) > first + 150

        await eventually(later)
        await worker.answer("x")
        assert (await asked).status_code == 200


async def test_ndjson_error_lines_of_a_stop(server: Server) -> None:
    async with stage(server.url, grace_s=0.1) as grid:
        worker = await grid.worker()
        said = ""
        async with grid.http.stream("POST", "/api/chat", json=chat()) as answer:
            await worker.say(await worker.take(), "half")
            stopping = asyncio.create_task(grid.stop())
            try:
                async for piece in answer.aiter_text():
                    said += piece
                pytest.fail("the stream ended clean")
            except httpx.RemoteProtocolError:
                pass
        await stopping
        assert "being stopped" in lines(said)[-1]["error"]
