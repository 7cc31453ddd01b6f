"""The client leaves: the connection's closing is the only sign, and it is seen at every moment."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cogrid.model.task import Task
from cogrid.store.script import Call
from tests.coordinator.stage import LIMITS, Stage, chat, eventually

PATHS = ("/v1/chat/completions", "/api/chat")


async def post(grid: Stage, path: str, body: Any, **headers: str) -> asyncio.StreamWriter:
    """A request over a bare socket; the caller closes it."""
    _, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode() + b"\r\n" + data)
    await writer.drain()
    return writer


async def leave(writer: asyncio.StreamWriter, how: str = "close") -> None:
    """Close the connection, in order or with a reset."""
    if how == "reset":
        writer.transport.abort()
    else:
        writer.close()
        await writer.wait_closed()


async def gone(grid: Stage) -> bool:
    return len(grid.coordinator.services.live) == 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_while_it_waits(grid: Stage, path: str, stream: bool, how: str) -> None:
    writer = await post(grid, path, chat(stream=stream))
    task = await grid.pending()
    await leave(writer, how)
    left = await grid.state(task, "cancelled")
    assert left.error == "the client left"
    await eventually(lambda: gone(grid))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("said", [0, 1])
async def test_while_it_runs(grid: Stage, path: str, stream: bool, said: int) -> None:
    worker = grid.workers["esxi"]
    writer = await post(grid, path, chat(stream=stream))
    task = await worker.take()
    for _ in range(said):
        await worker.say(task, "text")
    await leave(writer)
    await grid.state(task.id, "cancelled")
    assert await worker.say(task, "more") == "lost"
    assert (await worker.done(task)).status == "lost"


async def test_background_calls_are_not_even_submitted(grid: Stage) -> None:
    writer = await post(grid, PATHS[0], chat("### Task:\nGenerate a title"))
    await eventually(lambda: not_gone(grid))
    await leave(writer)
    await eventually(lambda: gone(grid))
    await asyncio.sleep(2 * LIMITS.background_delay_s)
    assert await grid.call("XLEN", grid.store.keys.events) == 2  # hello, registered


async def not_gone(grid: Stage) -> bool:
    return len(grid.coordinator.services.live) == 1


async def test_two_hundred_times_without_a_leak(grid: Stage) -> None:
    services = grid.coordinator.services
    for _ in range(200):
        writer = await post(grid, PATHS[0], chat(stream=True))
        await eventually(lambda: not_gone(grid))
        await leave(writer)
        await eventually(lambda: gone(grid))
    await eventually(lambda: open_tasks(grid, 0))
    assert not services.live._by_task
    assert not services.departures._telling
    assert await grid.call("ZCARD", grid.store.keys.clients) == 0


async def open_tasks(grid: Stage, count: int) -> bool:
    return bool(await grid.call("ZCARD", grid.store.keys.due) == count)


async def test_one_of_two_listeners_leaves(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    first = asyncio.create_task(grid.http.post(PATHS[0], json=chat()))
    task = await grid.pending()
    _, writer = await asyncio.open_connection("127.0.0.1", grid.port)
    writer.write(f"GET /task/{task}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await eventually(lambda: followers(grid, task, 2))
    await leave(writer)
    await eventually(lambda: followers(grid, task, 1))
    await worker.answer("still here")
    assert (await first).json()["choices"][0]["message"]["content"] == "still here"


async def followers(grid: Stage, task: str, count: int) -> bool:
    said = await grid.call("HGET", grid.store.keys.task(task), "followers")
    return len((said or b"").split()) == count


async def test_keep_lets_it_run_on(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    writer = await post(grid, PATHS[0], chat(stream=True), X_Cogrid_On_Close="keep")
    task = await worker.take()
    await leave(writer)
    await eventually(lambda: followers(grid, task.id, 0))
    await worker.say(task, "done all the same")
    assert (await worker.done(task)).state == "done"
    answer = await grid.http.get(f"/task/{task.id}")
    message = answer.json()["result"]["choices"][0]["message"]
    assert message["content"] == "done all the same"


async def test_another_request_under_the_key_of_one_that_is_kept_ends_nothing(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    headers = {"Idempotency-Key": "k2", "X-Cogrid-On-Close": "keep"}
    first = asyncio.create_task(grid.http.post(PATHS[0], json=chat(), headers=headers))
    task = await worker.take()
    refused = await grid.http.post(PATHS[0], json=chat("something else"), headers=headers)
    assert refused.status_code == 422
    await eventually(lambda: nothing_to_tell(grid))
    await worker.say(task, "undisturbed")
    assert (await worker.done(task)).state == "done"
    assert (await first).json()["choices"][0]["message"]["content"] == "undisturbed"


async def test_of_two_requests_at_once_under_one_key_one_is_refused(
    grid: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look before either is submitted."""
    store = grid.coordinator.services.store
    do, both_looked = store.do, asyncio.Barrier(2)

    async def late(call: Call[Any]) -> Any:
        if call.name == "submit":
            await both_looked.wait()
        return await do(call)

    monkeypatch.setattr(store, "do", late)
    headers = {"Idempotency-Key": "k3", "X-Cogrid-On-Close": "keep"}
    bodies = (chat("one thing"), chat("another"))
    both = [
        asyncio.create_task(grid.http.post(PATHS[0], json=body, headers=headers)) for body in bodies
    ]
    await grid.workers["esxi"].answer("to the first")
    answers = sorted([await one for one in both], key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in answers] == [200, 422]
    assert answers[0].json()["choices"][0]["message"]["content"] == "to the first"
    assert answers[1].json()["error"]["code"] == "idempotency_mismatch"
    await eventually(lambda: nothing_to_tell(grid))
    assert int(await grid.call("HGET", grid.store.keys.totals, "done")) == 1


async def nothing_to_tell(grid: Stage) -> bool:
    return not grid.coordinator.services.departures._telling


async def test_an_idempotency_key_gives_time_to_come_back(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    writer = await post(grid, PATHS[0], chat(stream=True), Idempotency_Key="k1")
    task = await worker.take()
    await worker.say(task, "first ")
    await leave(writer)
    await eventually(lambda: followers(grid, task.id, 0))
    assert (await state_of(grid, task.id)).state == "running"
    again = asyncio.create_task(
        grid.http.post(PATHS[0], json=chat(stream=True), headers={"Idempotency-Key": "k1"})
    )
    # Not the same bytes: json.dumps and httpx write spaces differently.
    assert (await again).status_code == 422
    same = json.dumps(chat(stream=True)).encode()
    again = asyncio.create_task(
        grid.http.post(PATHS[0], content=same, headers={"Idempotency-Key": "k1"})
    )
    await eventually(lambda: followers(grid, task.id, 1))
    await worker.say(task, "second")
    await worker.done(task)
    answer = await again
    assert answer.headers["x-cogrid-task"] == task.id
    assert '"content":"first "' in answer.text
    assert answer.text.endswith("data: [DONE]\n\n")
    finished = await grid.http.post(PATHS[0], content=same, headers={"Idempotency-Key": "k1"})
    assert finished.text == answer.text


async def state_of(grid: Stage, task: str) -> Task:
    found = await grid.task(task)
    assert found is not None
    return found
