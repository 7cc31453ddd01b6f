"""The fault engine by hand: as a process, over HTTP, with the official clients."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import msgspec
import pytest

from cogrid.engine.fault import FaultEngine, Mode
from tests.wait import until_async


@pytest.fixture
async def running() -> AsyncIterator[str]:
    """``python -m cogrid.engine.fault``; its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cogrid.engine.fault", "--models", "a,b@embedding=7", "--tokens", "3",
        "--offers", "c=9",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    url = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    yield url
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_models_have_sizes_and_others_can_be_pulled(running: str) -> None:
    async with httpx.AsyncClient(base_url=running, timeout=10) as client:

        async def sizes() -> dict[str, int]:
            models = (await client.get("/api/tags")).json()["models"]
            return {model["name"]: model["size"] for model in models}

        assert await sizes() == {"a:latest": 1_000_000, "b:latest": 7}
        for name, told in (("c", "success"), ("d", "file does not exist")):
            assert told in (await client.post("/api/pull", json={"model": name})).text
        assert await sizes() == {"a:latest": 1_000_000, "b:latest": 7, "c:latest": 9}


async def test_switches_over_http(running: str) -> None:
    ask = {"model": "a", "messages": [{"role": "user", "content": "hi"}], "stream": False}
    async with httpx.AsyncClient(base_url=running, timeout=10) as client:
        answer = (await client.post("/api/chat", json=ask)).json()
        assert (answer["message"]["content"], answer["done_reason"]) == ("0 1 2 ", "stop")
        told = (await client.post("/fault", json={"mode": "busy", "model": "a", "times": 1})).json()
        assert [switch["mode"] for switch in told["switches"]] == ["busy"]
        assert [(await client.post("/api/chat", json=ask)).status_code for _ in "12"] == [503, 200]
        await client.post("/fault", json={"mode": "stall", "after": 1})
        with pytest.raises(httpx.ReadTimeout):
            await client.post("/api/chat", json=ask | {"stream": True}, timeout=0.2)

        async def aborted() -> bool:
            return bool((await client.get("/fault")).json()["aborted"] == 1)

        told_yet: Callable[[], bool | Awaitable[bool]] = aborted
        await until_async(told_yet)
        records = (await client.get("/fault/requests")).json()["requests"]
        assert [record["outcome"] for record in records] == ["done", "failed", "done", "aborted"]
        assert records[-1]["tokens"] == 1
        assert records[-1]["ended_s"] - records[-1]["started_s"] < 2
        assert (await client.delete("/fault")).json()["switches"] == []
        assert (await client.post("/fault", json={"mode": "nonsense"})).status_code == 400


async def test_the_official_clients() -> None:
    """They are strict about forms, so the answers have the right ones."""
    import ollama
    import openai

    async with FaultEngine(tokens=3) as fault:
        chat: Any = [{"role": "user", "content": "hi"}]
        client = ollama.AsyncClient(fault.url)
        answer = await client.chat("gemma3:1b", chat)
        assert (answer.message.content, answer.eval_count) == ("0 1 2 ", 3)
        pieces = [p.response async for p in await client.generate("gemma3:1b", "hi", stream=True)]
        assert pieces == ["0 ", "1 ", "2 ", ""]
        assert len((await client.embed("gemma3:1b", ["a", "b"])).embeddings) == 2
        assert (await client.show("gemma3:1b")).capabilities
        assert [model.model for model in (await client.ps()).models] == ["gemma3:1b"]
        with pytest.raises(ollama.ResponseError, match="not found"):
            await client.chat("nope", chat)
        fault.set(Mode.TOOL_CALLS)
        called = (await client.chat("gemma3:1b", chat)).message.tool_calls
        assert called is not None
        assert [call.function.arguments["city"] for call in called] == ["Zürich", "東京"]
        await client._client.aclose()
        async with openai.AsyncOpenAI(base_url=f"{fault.url}/v1", api_key="none") as other:
            said = await other.chat.completions.create(model="gemma3:1b", messages=chat)
            assert said.choices[0].finish_reason == "tool_calls"
            fault.switches.clear()
            assert [model.id async for model in other.models.list()] == ["gemma3:1b"]
            stream = await other.chat.completions.create(
                model="gemma3:1b",
                messages=chat,
                stream=True,
                stream_options={"include_usage": True},
                max_tokens=2,
            )
            chunks = [chunk async for chunk in stream]
            assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None, None, "length"]
            assert chunks[-1].usage is not None
            assert chunks[-1].usage.completion_tokens == 2
            with pytest.raises(openai.NotFoundError):
                await other.chat.completions.create(model="nope", messages=chat)


async def test_two_requests_in_one_packet() -> None:
    """A client that asks again before it has read the answer is still answered twice."""
    async with FaultEngine() as fault:
        host, _, port = fault.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/version HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        for _ in range(2):
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            assert "version" in msgspec.json.decode(await reader.readuntil(b"}"))
        writer.close()
        await writer.wait_closed()


async def test_what_is_no_request() -> None:
    async with FaultEngine() as fault, httpx.AsyncClient(base_url=fault.url) as client:
        assert (await client.post("/api/chat", content=b"{oops")).status_code == 400
        assert (await client.get("/nowhere")).text == "404 page not found"
        assert (await client.post("/api/show", json={"model": "x"})).status_code == 404
