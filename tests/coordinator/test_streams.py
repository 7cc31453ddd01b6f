"""Streams from the log of a task to the client: pieces, ends, resets, moves, errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from cogrid.model.chat import Delta
from cogrid.model.names import TaskId, own_queue, shared_queue
from cogrid.store.passes import begin_pass, move, reap
from cogrid.store.snapshot import read_snapshot
from tests.coordinator.stage import LIMITS, Stage, chat, content, events, lines


async def test_one_id_one_time_one_end(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat(stream=True)))
    await grid.workers["esxi"].answer("Hel", "lo", Delta(thinking="hm"))
    answer = await asked
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-accel-buffering"] == "no"
    task = answer.headers["x-cogrid-task"]
    assert answer.headers["x-cogrid-domain"] == "general"
    assert answer.headers["x-cogrid-model"] == "gemma3:1b"
    assert answer.headers["x-cogrid-queue"] == "tasks:cpu:shared:gemma3:1b"
    *chunks, end = events(answer.text)
    assert end == "[DONE]"
    assert {chunk["id"] for chunk in chunks} == {f"chatcmpl-{task}"}
    assert len({chunk["created"] for chunk in chunks}) == 1
    assert content(chunks) == "Hello"
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]] == [
        None, None, None, "stop",
    ]  # fmt: skip
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "role" not in chunks[1]["choices"][0]["delta"]
    assert chunks[2]["choices"][0]["delta"] == {"reasoning_content": "hm"}
    assert chunks[-1]["cogrid"] == {
        "task": task,
        "worker": "esxi",
        "domain": "general",
        "model": "gemma3:1b",
        "queue": "tasks:cpu:shared:gemma3:1b",
        "recoveries": 0,
    }


async def test_usage_when_asked_for(grid: Stage) -> None:
    body = chat(stream=True, stream_options={"include_usage": True})
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=body))
    await grid.workers["esxi"].answer("Hello")
    *_, usage, end = events((await asked).text)
    assert end == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


async def test_ollama_streams_unless_told_otherwise(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/api/chat", json=chat()))
    await grid.workers["esxi"].answer("Hel", "lo", reason="length")
    answer = await asked
    assert answer.headers["content-type"] == "application/x-ndjson"
    *pieces, last = lines(answer.text)
    assert [piece["message"]["content"] for piece in pieces] == ["Hel", "lo"]
    assert not any(piece["done"] for piece in pieces)
    assert last["done"] is True
    assert last["done_reason"] == "length"
    assert last["eval_count"] == 2
    assert last["eval_duration"] == 1_000_000_000
    assert last["cogrid"]["worker"] == "esxi"


async def test_the_last_word_of_a_stream_comes_with_its_first_try(grid: Stage) -> None:
    """A piece reaches the client when it is written, not when the answer is over."""
    worker = grid.workers["esxi"]
    async with grid.http.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as answer:
        task = await worker.take()
        await worker.say(task, "first")
        pieces = answer.aiter_text()
        async for piece in pieces:
            if "first" in piece:
                break
        assert (await grid.task(task.id)).state == "running"  # type: ignore[union-attr]
        await worker.done(task)
        rest = "".join([piece async for piece in pieces])
    assert rest.endswith("data: [DONE]\n\n")


async def read_until(answer: httpx.Response, done: Callable[[str], bool]) -> AsyncIterator[str]:
    """Pieces until what came is enough, then the rest in one."""
    said = ""
    pieces = answer.aiter_text()
    async for piece in pieces:
        said += piece
        if done(said):
            break
    yield said
    yield "".join([piece async for piece in pieces])


async def test_waiting_clients_see_signs_of_life(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    async with grid.http.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as answer:
        reading = read_until(answer, lambda said: said.count(": waiting\n\n") == 2)
        assert await anext(reading) == ": waiting\n\n: waiting\n\n"
        await worker.answer("x")
        assert content(events(await anext(reading))[:-1]) == "x"
    async with grid.http.stream("POST", "/api/chat", json=chat()) as answer:
        reading = read_until(answer, lambda said: said.count("\n") == 2)
        for empty in lines(await anext(reading)):
            assert empty["message"] == {"role": "assistant", "content": ""}
            assert empty["done"] is False
        await worker.answer("x")
        assert lines(await anext(reading))[-1]["done"] is True


async def test_a_whole_answer(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat()))
    await grid.workers["esxi"].answer("Hel", "lo", Delta(thinking="hm"))
    answer = await asked
    assert answer.headers["x-cogrid-worker"] == "esxi"
    told = answer.json()
    assert told["object"] == "chat.completion"
    assert told["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "reasoning_content": "hm"},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert told["usage"]["total_tokens"] == 5
    assert told["cogrid"]["worker"] == "esxi"


async def test_a_run_without_text_is_followed_by_another_without_a_word(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat(stream=True)))
    worker = grid.workers["esxi"]
    await worker.hand_back(await worker.take())
    await worker.answer("again")
    chunks = events((await asked).text)
    assert chunks[-1] == "[DONE]"
    assert content(chunks[:-1]) == "again"
    assert chunks[-2]["cogrid"]["recoveries"] == 0


async def test_text_of_a_whole_answer_is_taken_back_in_silence(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat()))
    worker = grid.workers["esxi"]
    first = await worker.take()
    await worker.say(first, "void")
    await worker.hand_back(first)
    await worker.answer("good")
    assert (await asked).json()["choices"][0]["message"]["content"] == "good"


async def test_text_that_was_sent_is_never_followed_by_another_runs(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat(stream=True)))
    worker = grid.workers["esxi"]
    first = await worker.take()
    await worker.say(first, "half")
    await worker.hand_back(first)
    *chunks, error = events((await asked).text)
    assert content(chunks) == "half"
    assert error["error"]["code"] == "broken_stream"
    assert "[DONE]" not in chunks


async def read_out(answer: httpx.Response) -> tuple[str, bool]:
    """All that comes, and whether the connection was broken off at the end."""
    said = b""
    try:
        async for piece in answer.aiter_bytes():
            said += piece
    except httpx.RemoteProtocolError:
        return said.decode(), True
    return said.decode(), False


async def test_an_ndjson_stream_never_ends_clean_in_an_error(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    async with grid.http.stream("POST", "/api/chat", json=chat()) as answer:
        task = await worker.take()
        await worker.say(task, "half")
        await worker.fail(task, "the engine of esxi has crashed")
        said, broke = await read_out(answer)
    assert broke
    *_, error = lines(said)
    assert error == {"error": "the engine of esxi has crashed"}


@pytest.mark.parametrize(
    ("code", "status"),
    [("engine_error", 502), ("engine_refused", 400), ("timeout", 504), ("unheard_of", 500)],
)
async def test_a_failed_whole_answer_has_a_status(grid: Stage, code: str, status: int) -> None:
    worker = grid.workers["esxi"]
    for path, read in (
        ("/v1/chat/completions", ("error", "message")),
        ("/api/chat", ("error",)),
    ):
        asked = asyncio.create_task(grid.http.post(path, json=chat(stream=False)))
        await worker.fail(await worker.take(), "gemma3:1b on esxi failed: out of memory", code)
        answer = await asked
        assert answer.status_code == status
        said = answer.json()
        for name in read:
            said = said[name]
        assert said == "gemma3:1b on esxi failed: out of memory"


async def a_pass(grid: Stage) -> str:
    """A reaper's pass that may act; the server's run id."""
    snapshot = await grid.store.read(read_snapshot(grid.store.keys))
    server = snapshot.server
    call = begin_pass(grid.store.keys, server.run_id, server.replication_id, LIMITS)
    await grid.store.do(call)
    await grid.call("HSET", grid.store.keys.reaper, "hold_until", "0")
    return server.run_id


STATUS = {"X-Cogrid-Status": "1"}


def told(chunks: list[Any]) -> list[tuple[str, bool]]:
    """The status frames: what they say, and whether they are the last."""
    return [
        (chunk["event"]["data"]["description"], chunk["event"]["data"]["done"])
        for chunk in chunks
        if isinstance(chunk, dict) and "event" in chunk
    ]


async def test_status_frames_tell_the_incident(grid: Stage) -> None:
    """Asked for esxi, waits there, esxi turns out to be dead, ai-core answers."""
    other = await grid.worker("ai-core", pool="gpu")
    headers = {"X-OpenWebUI-User-Id": "1", "X-Cogrid-Worker": "esxi"}
    asked = asyncio.create_task(
        grid.http.post("/v1/chat/completions", json=chat(stream=True), headers=headers)
    )
    task = await grid.pending()
    await grid.call("DEL", grid.store.keys.worker("esxi"))
    run_id = await a_pass(grid)
    moved = move(
        grid.store.keys,
        TaskId(task),
        own_queue("cpu", "esxi"),
        shared_queue("gpu", "gemma3:1b"),
        "gone",
        run_id,
        LIMITS,
    )
    assert (await grid.store.do(moved)).status == "ok"
    await other.answer("Hello")
    chunks = events((await asked).text)
    here = "domain general · model gemma3:1b · worker"
    there = f"{here} ai-core · queue tasks:gpu:shared:gemma3:1b"
    moved_on = f"{there} · moved from esxi (dead_worker) to ai-core"
    assert told(chunks) == [
        (f"{here} esxi · queue tasks:cpu:esxi · ⏳ waiting, position 1", False),
        (moved_on, False),
        (f"{moved_on} · running on ai-core", False),
        (f"{moved_on} · running on ai-core", True),
    ]
    assert content(chunks[:-1]) == "Hello"
    assert all("choices" in chunk for chunk in chunks[:-1])
    assert chunks[-2]["cogrid"]["worker"] == "ai-core"


async def test_a_recovery_is_counted_and_told(grid: Stage) -> None:
    asked = asyncio.create_task(
        grid.http.post("/v1/chat/completions", json=chat(stream=True), headers=STATUS)
    )
    worker = grid.workers["esxi"]
    task = await worker.take()
    other = await grid.worker("ai-core")
    run_id = await a_pass(grid)
    await grid.call("ZADD", grid.store.keys.due, "1", task.id)
    reaped = reap(
        grid.store.keys,
        task.id,
        task.token,
        own_queue("cpu", "ai-core"),
        "broken",
        "spent",
        run_id,
        LIMITS,
    )
    assert (await grid.store.do(reaped)).status == "requeued"
    await other.answer("Hello")
    chunks = events((await asked).text)
    said = [line.rpartition("queue ")[2] for line, _ in told(chunks)]
    assert said[2] == "tasks:cpu:ai-core · moved from esxi (zombie_running) to ai-core"
    assert chunks[-2]["cogrid"]["recoveries"] == 1


async def test_clients_that_ask_for_no_frames_get_none(grid: Stage) -> None:
    asked = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat(stream=True)))
    await grid.workers["esxi"].answer("Hello")
    assert told(events((await asked).text)) == []


async def test_a_waiting_client_is_told_its_place_as_it_changes(grid: Stage) -> None:
    worker = grid.workers["esxi"]
    first = asyncio.create_task(grid.http.post("/v1/chat/completions", json=chat()))
    await grid.pending()
    path, said = "/v1/chat/completions", ""
    async with grid.http.stream("POST", path, json=chat(stream=True), headers=STATUS) as answer:
        answered = False
        async for piece in answer.aiter_text():
            said += piece
            if "position 2" in said and not answered:
                assert "position 1" not in said
                answered = True
                await worker.answer("x")
            if "position 1" in said:
                break
        await worker.answer("y")
    await first
