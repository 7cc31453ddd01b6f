"""The grid's own interface: tasks that nobody has to wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.coordinator.stage import Stage, chat, eventually


async def create(grid: Stage, **fields: Any) -> dict[str, Any]:
    answer = await grid.http.post("/task", json={"request": chat(), **fields})
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_task_from_its_start_to_its_end(grid: Stage) -> None:
    made = await create(grid, band="batch")
    task = made["task"]
    assert made == {
        "task": task,
        "state": "pending",
        "domain": "general",
        "model": "gemma3:1b",
        "queue": "tasks:cpu:shared:gemma3:1b",
        "position": 1,
    }
    second = await create(grid, band="interactive", worker="esxi")
    assert second["queue"] == "tasks:cpu:esxi"
    told = (await grid.http.get(f"/task/{task[:10]}")).json()
    assert (told["state"], told["position"], told["result"]) == ("pending", 1, None)
    worker = grid.workers["esxi"]
    first = await worker.take()
    assert first.id == second["task"], "interactive comes before batch"
    await worker.done(first)
    await worker.answer("Hel", "lo")
    told = (await grid.http.get(f"/task/{task}")).json()
    assert told["state"] == "done"
    assert (told["worker"], told["attempts"], told["recoveries"]) == ("esxi", 0, 0)
    assert told["result"]["choices"][0]["message"]["content"] == "Hello"
    assert told["result"]["cogrid"]["task"] == task


async def test_nobody_listens_and_it_runs_all_the_same(grid: Stage) -> None:
    made = await create(grid)
    assert await grid.call("ZSCORE", grid.store.keys.clients, made["task"]) is None
    await grid.call("DEL", grid.store.keys.clients)
    await grid.workers["esxi"].answer("x")
    await grid.state(made["task"], "done")


async def test_a_failed_task_says_why(grid: Stage) -> None:
    made = await create(grid)
    worker = grid.workers["esxi"]
    await worker.fail(await worker.take(), "gemma3:1b on esxi failed: out of memory")
    told = (await grid.http.get(f"/task/{made['task']}")).json()
    assert (told["state"], told["error"], told["result"]) == (
        "failed",
        "gemma3:1b on esxi failed: out of memory",
        None,
    )


async def test_its_events_can_be_read_from_any_point(grid: Stage) -> None:
    made = await create(grid)
    path = f"/task/{made['task']}/events"
    text = ""
    async with grid.http.stream("GET", path) as reading:
        async for piece in reading.aiter_text():
            if not text:
                assert piece.startswith(": waiting\n\n")
                await grid.workers["esxi"].answer("Hel", "lo")
            text += piece
    told = [part.split("\n") for part in text.split("\n\n") if part.startswith("id: ")]
    assert [lines[1] for lines in told] == [
        "event: claimed",
        "event: text",
        "event: text",
        "event: end",
    ]
    assert told[1][2] == 'data: {"content":"Hel"}'
    second = told[1][0].removeprefix("id: ")
    rest = await grid.http.get(path, headers={"Last-Event-ID": second})
    assert [line for line in rest.text.split("\n") if line.startswith("data")] == [
        'data: {"content":"lo"}',
        told[3][2],
    ]
    bad = await grid.http.get(path, headers={"Last-Event-ID": "x"})
    assert bad.status_code == 400


async def test_watching_ends_nothing(grid: Stage) -> None:
    made = await create(grid)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await grid.http.get(f"/task/{made['task']}/events")
    await eventually(lambda: unwatched(grid, made["task"]))
    await grid.workers["esxi"].answer("x")
    await grid.state(made["task"], "done")


async def unwatched(grid: Stage, task: str) -> bool:
    return not await grid.call("HGET", grid.store.keys.task(task), "followers")


async def test_delete_ends_it_at_once(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat()))
    task = await grid.workers["esxi"].take()
    told = (await grid.http.delete(f"/task/{task.id}")).json()
    assert told == {"task": task.id, "state": "cancelled", "cancelled": True}
    answer = await asked
    assert answer.status_code == 410
    assert "cancelled by its owner" in answer.json()["error"]["message"]
    again = (await grid.http.delete(f"/task/{task.id}")).json()
    assert again == {"task": task.id, "state": "cancelled", "cancelled": False}


async def test_a_prefix_must_be_of_one_task(grid: Stage) -> None:
    ids = [(await create(grid))["task"] for _ in range(17)]  # two of 17 begin alike
    starts = [task[0] for task in ids]
    twice = next(start for start in starts if starts.count(start) > 1)
    answer = await grid.http.get(f"/task/{twice}")
    assert answer.status_code == 404
    assert f"more than one task begins with {twice}" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "request must be an object"),
        ({"request": chat(), "band": "now"}, "write interactive, background, batch"),
        ({"request": chat(), "band": []}, "band must be a text, not a list"),
        ({"request": chat(), "path": "/x"}, "path is '/x'"),
        ({"request": chat(), "path": {}}, "path must be a text, not an object"),
        ({"request": chat(), "worker": "../x"}, "no worker's name"),
        ({"request": {"model": "gemma3:1b"}}, "messages is missing"),
        ({"request": {"model": "gemma3:1b"}, "path": "/api/chat"}, "asks for nothing"),
    ],
)
async def test_bad_tasks(grid: Stage, body: Any, sentence: str) -> None:
    answer = await grid.http.post("/task", json=body)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]
