"""The official client libraries of both dialects understand every kind of answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import ollama
import openai
import pytest

from cogrid.model.chat import Delta, ToolCall
from cogrid.model.worker import Offer
from tests.coordinator.stage import MODEL, Stage

EMBEDDER = Offer("nomic-embed-text", supports=("embed",))
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
    }
]


@pytest.fixture
async def of_openai(grid: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{grid.url}/v1", api_key="none", max_retries=0, timeout=10
    ) as client:
        yield client


@pytest.fixture
async def of_ollama(grid: Stage) -> AsyncIterator[ollama.AsyncClient]:
    client = ollama.AsyncClient(host=grid.url, timeout=10)
    yield client
    await client._client.aclose()


async def test_openai_streams(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    worker = asyncio.create_task(grid.workers["esxi"].answer("Hel", "lo"))
    stream = await of_openai.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=7,
        extra_body={"min_p": 0.1},
        extra_headers={"X-Cogrid-Status": "1"},
    )
    chunks = [chunk async for chunk in stream]
    asked = await worker
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 5
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert asked.payload == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 7,
        "min_p": 0.1,
    }


async def test_openai_whole(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    worker = asyncio.create_task(grid.workers["esxi"].answer("Hello", reason="length"))
    answer = await of_openai.chat.completions.create(
        model=f"{MODEL}", messages=[{"role": "user", "content": "hi"}]
    )
    await worker
    assert answer.choices[0].message.content == "Hello"
    assert answer.choices[0].finish_reason == "length"


async def test_openai_calls_tools(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    pieces = (
        Delta(tool_calls=(ToolCall(0, "", "weather", '{"city":'),)),
        Delta(tool_calls=(ToolCall(0, "", "", '"Oslo"}'),)),
    )
    worker = asyncio.create_task(grid.workers["esxi"].answer(*pieces))
    answer = await of_openai.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "hi"}],
        tools=TOOLS,  # type: ignore[arg-type]
    )
    await worker
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    (call,) = calls
    assert call.id
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("weather", '{"city":"Oslo"}')


async def test_openai_completions(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    worker = asyncio.create_task(grid.workers["esxi"].answer("one", " two"))
    stream = await of_openai.completions.create(model=MODEL, prompt="count", stream=True)
    texts = [chunk.choices[0].text async for chunk in stream if chunk.choices]
    await worker
    assert texts == ["one", " two", ""]


async def test_openai_embeddings(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    """The library asks for base64 by itself, and unpacks it."""
    embedder = await grid.worker("ai-core", EMBEDDER)
    vectors = Delta(embeddings=((0.5, -1.0), (0.25, 2.0)))
    worker = asyncio.create_task(embedder.answer(vectors))
    answer = await of_openai.embeddings.create(model="nomic-embed-text:latest", input=["a", "b"])
    asked = await worker
    assert [entry.embedding for entry in answer.data] == [[0.5, -1.0], [0.25, 2.0]]
    assert answer.usage.prompt_tokens == 3
    assert asked.payload == {"model": "nomic-embed-text", "input": ["a", "b"]}


async def test_openai_errors(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    ask = of_openai.chat.completions.create
    with pytest.raises(openai.NotFoundError, match="did you mean 'gemma3:1b'"):
        await ask(model="gemma3:2b", messages=[{"role": "user", "content": "hi"}])
    with pytest.raises(openai.BadRequestError, match="n is more than 1"):
        await ask(model=MODEL, messages=[{"role": "user", "content": "hi"}], n=2)
    worker = grid.workers["esxi"]
    stream = await ask(model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True)
    task = await worker.take()
    await worker.say(task, "half")
    await worker.fail(task, "gemma3:1b on esxi failed: out of memory")
    with pytest.raises(openai.APIError, match="out of memory"):
        [chunk async for chunk in stream]


async def test_openai_models(grid: Stage, of_openai: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in of_openai.models.list()] == [MODEL]
    assert (await of_openai.models.retrieve(MODEL)).owned_by == "cogrid"
    with pytest.raises(openai.NotFoundError, match="'nope' has no home"):
        await of_openai.models.retrieve("nope")


async def test_ollama_chats(grid: Stage, of_ollama: ollama.AsyncClient) -> None:
    message = [{"role": "user", "content": "hi"}]
    worker = asyncio.create_task(grid.workers["esxi"].answer("Hel", Delta(thinking="hm"), "lo"))
    stream = await of_ollama.chat(
        model=MODEL, messages=message, stream=True, options={"num_predict": 7}
    )
    parts = [part async for part in stream]
    asked = await worker
    assert "".join(part.message.content or "" for part in parts) == "Hello"
    assert "".join(part.message.thinking or "" for part in parts) == "hm"
    assert parts[-1].done_reason == "stop"
    assert parts[-1].total_duration == 2_000_000_000
    assert asked.payload["options"] == {"num_predict": 7}
    assert "stream" not in asked.payload
    call = Delta(tool_calls=(ToolCall(0, "", "weather", '{"city":"Oslo"}'),))
    worker = asyncio.create_task(grid.workers["esxi"].answer(call))
    answer = await of_ollama.chat(model=MODEL, messages=message, tools=TOOLS)
    await worker
    (made,) = answer.message.tool_calls or ()
    assert (made.function.name, made.function.arguments) == ("weather", {"city": "Oslo"})


async def test_ollama_generates_and_embeds(grid: Stage, of_ollama: ollama.AsyncClient) -> None:
    worker = asyncio.create_task(grid.workers["esxi"].answer("one", " two"))
    answer = await of_ollama.generate(model=MODEL, prompt="count")
    await worker
    assert answer.response == "one two"
    embedder = await grid.worker("ai-core", EMBEDDER)
    for ask in (of_ollama.embed, of_ollama.embeddings):
        worker = asyncio.create_task(embedder.answer(Delta(embeddings=((0.5, -1.0),))))
        given = {"input": "a"} if ask == of_ollama.embed else {"prompt": "a"}
        made = await ask(model="nomic-embed-text", **given)  # type: ignore[arg-type]
        asked = await worker
        assert asked.payload == {"model": "nomic-embed-text", "input": "a"}
        said = made.embeddings[0] if isinstance(made, ollama.EmbedResponse) else made.embedding
        assert list(said) == [0.5, -1.0]


async def test_ollama_loads_without_a_task(grid: Stage, of_ollama: ollama.AsyncClient) -> None:
    answer = await of_ollama.chat(model=MODEL, messages=[])
    assert (answer.done, answer.done_reason) == (True, "load")
    assert (await of_ollama.generate(model=MODEL, keep_alive=0)).done_reason == "unload"
    assert await grid.call("HGET", grid.store.keys.totals, "submitted") is None
    with pytest.raises(ollama.ResponseError, match="'nope' is not known") as caught:
        await of_ollama.chat(model="nope", messages=[])
    assert caught.value.status_code == 404


async def test_ollama_lists(grid: Stage, of_ollama: ollama.AsyncClient) -> None:
    await grid.worker("ai-core", Offer("qwen3", loaded=True, size_bytes=5, vram_bytes=4))
    assert [model.model for model in (await of_ollama.list()).models] == [MODEL, "qwen3:latest"]
    (warm,) = (await of_ollama.ps()).models
    assert (warm.model, warm.size, warm.size_vram) == ("qwen3:latest", 5, 4)
    assert warm.expires_at is not None
    shown = await of_ollama.show("gemma3:1b")
    assert shown.capabilities == ["completion", "tools"]
    with pytest.raises(ollama.ResponseError, match="'nope' has no home"):
        await of_ollama.show("nope")


async def test_ollama_errors(grid: Stage, of_ollama: ollama.AsyncClient) -> None:
    worker = grid.workers["esxi"]
    stream = await of_ollama.chat(
        model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
    )
    asked = asyncio.ensure_future(anext(stream))
    task = await worker.take()
    await worker.fail(task, "gemma3:1b on esxi failed: out of memory")
    with pytest.raises(ollama.ResponseError, match="out of memory"):
        await asked
