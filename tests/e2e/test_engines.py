"""Real engines behind the grid, asked through the official libraries: what they answer by
themselves is what they answer through it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ollama
import openai
import pytest
import pytest_asyncio

from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from tests.conftest import SCALE, missing, needs
from tests.e2e.grid import Grid
from tests.engines.cache import NotInstalledError
from tests.engines.llama_cpp import run_llama_cpp
from tests.engines.ollama import create, run_ollama
from tests.engines.process import EngineProcess
from tests.engines.tiny_model import CALL_TOKEN, DIM, END_TOKEN, WORDS, make_tiny_model
from tests.servers import VALKEY9

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),  # the first test of a fresh machine fetches the engines
    pytest.mark.asyncio(loop_scope="module"),
]

ENGINE_SCALE = max(0.3, SCALE)
"""Engines compute at their own pace, so their time limits shrink less than ours."""

CHATS = ("tiny", "tiny-cpp")
EMBEDS = ("tiny-embed", "tiny-cpp-embed")
ASKED: Any = [{"role": "user", "content": "tell me a story"}]
SAME: dict[str, Any] = {"temperature": 0, "seed": 1}
"""Greedy: the same question has the same answer."""

CITY = {"type": "object", "properties": {"city": {"enum": ["Bern"]}}, "required": ["city"]}
TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "of a city", "parameters": CITY},
}
CALL = {
    "type": "object",
    "properties": {"name": {"enum": ["weather"]}, "arguments": CITY},
    "required": ["name", "arguments"],
}
"""What the random model is held to by a grammar, so that it calls a tool at all."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The grid, and the libraries' clients of its /v1 and /api. owner: whose model is whose."""

    grid: Grid
    v1: openai.AsyncOpenAI
    api: ollama.AsyncClient
    owner: dict[str, EngineProcess]
    faulty: dict[str, FaultEngine]

    def direct(self, model: str) -> openai.AsyncOpenAI:
        """The engine itself."""
        return _openai(self.owner[model].url)


def _openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Ollama on esxi, llama.cpp twice on ai-core, and an engine of either dialect that does as it
    is told."""
    needs(VALKEY9)
    directory = tmp_path_factory.mktemp("engines")
    with contextlib.ExitStack() as stack:
        try:
            owner = await asyncio.to_thread(_engines, directory, stack)
        except NotInstalledError as error:
            missing(str(error), "it comes from the package index and needs a C compiler")
        async with Grid(directory / "grid", ENGINE_SCALE) as grid, _faulty() as faulty:
            grid.coordinator()
            grid.reaper()
            workers = {"esxi": owner["tiny"], "ai-core": owner["tiny-cpp"]}
            workers["ai-embed"] = owner["tiny-cpp-embed"]
            for name, engine in (workers | faulty).items():
                grid.worker(name, engine, slots=2)
            await grid.up(*workers, *faulty, within_s=60)
            async with _openai(grid.url) as client:
                other = ollama.AsyncClient(grid.url, timeout=60)
                yield Fleet(grid, client, other, owner, faulty)
                await other._client.aclose()


def _engines(directory: Path, stack: contextlib.ExitStack) -> dict[str, EngineProcess]:
    chats, embeds = directory / "chats.gguf", directory / "embeds.gguf"
    make_tiny_model(chats)
    make_tiny_model(embeds, embeds=True)
    own = stack.enter_context(run_ollama(directory))
    create(own, "tiny", chats)
    create(own, "tiny-embed", embeds)
    cpp = stack.enter_context(run_llama_cpp(directory, chats, "tiny-cpp"))
    vectors = stack.enter_context(run_llama_cpp(directory, embeds, "tiny-cpp-embed", embeds=True))
    return {"tiny": own, "tiny-embed": own, "tiny-cpp": cpp, "tiny-cpp-embed": vectors}


@contextlib.asynccontextmanager
async def _faulty() -> AsyncIterator[dict[str, FaultEngine]]:
    async with (
        FaultEngine([FaultModel("calls-ollama")], dialect="ollama") as one,
        FaultEngine([FaultModel("calls-openai")], dialect="openai") as two,
    ):
        yield {"calls-ollama": one, "calls-openai": two}


# Models.


async def test_models(fleet: Fleet) -> None:
    """Every engine's models, once each, in both lists; llama.cpp's under the name it was given."""
    names = {*CHATS, *EMBEDS, *fleet.faulty}
    assert {model.id async for model in fleet.v1.models.list()} == names
    assert (await fleet.v1.models.retrieve("tiny-cpp")).id == "tiny-cpp"
    tags = (await fleet.api.list()).models
    assert {str(tag.model).removesuffix(":latest") for tag in tags} == names
    shown = {name: (await fleet.api.show(name)).capabilities for name in (*CHATS, *EMBEDS)}
    assert set(shown["tiny"] or ()) == {"completion", "tools"}
    assert set(shown["tiny-cpp"] or ()) >= {"completion", "tools"}
    assert "embedding" in (shown["tiny-embed"] or ())
    assert shown["tiny-cpp-embed"] == ["embedding"]
    loaded = {str(each.model).removesuffix(":latest") for each in (await fleet.api.ps()).models}
    assert loaded >= {"tiny-cpp", "tiny-cpp-embed"}


async def test_a_wrong_model(fleet: Fleet) -> None:
    """404, and the sentence names the one that was meant."""
    with pytest.raises(openai.NotFoundError, match=r"tiny-cop.*tiny-cpp"):
        await fleet.v1.chat.completions.create(model="tiny-cop", messages=ASKED)
    with pytest.raises(openai.NotFoundError, match="nowhere"):
        await fleet.v1.models.retrieve("nowhere")
    with pytest.raises(ollama.ResponseError, match=r"tiny-cop.*tiny-cpp") as refused:
        await fleet.api.chat("tiny-cop", ASKED)
    assert refused.value.status_code == 404


# Chat.


@pytest.mark.parametrize("model", CHATS)
async def test_chat_openai(fleet: Fleet, model: str) -> None:
    """Whole and streamed, text and usage are the engine's own."""
    async with fleet.direct(model) as engine:
        own = await engine.chat.completions.create(
            model=model, messages=ASKED, max_tokens=12, **SAME
        )
    whole = await fleet.v1.chat.completions.create(
        model=model, messages=ASKED, max_tokens=12, **SAME
    )
    text = whole.choices[0].message.content or ""
    assert text == own.choices[0].message.content
    assert len(text.split()) == 12
    assert set(text.split()) <= set(WORDS)
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert own.usage is not None
    assert whole.usage.completion_tokens == 12
    assert whole.usage.prompt_tokens == own.usage.prompt_tokens > 12
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + 12

    stream = await fleet.v1.chat.completions.create(
        model=model,
        messages=ASKED,
        max_tokens=12,
        stream=True,
        stream_options={"include_usage": True},
        **SAME,
    )
    chunks = [chunk async for chunk in stream]
    said = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(said) == text
    reasons = [c.choices[0].finish_reason for c in chunks if c.choices]
    assert [reason for reason in reasons if reason] == ["length"]
    usages = [c.usage for c in chunks if c.usage]
    assert [usage.completion_tokens for usage in usages] == [12]
    assert len({c.id for c in chunks}) == 1


@pytest.mark.parametrize("model", CHATS)
async def test_chat_ollama(fleet: Fleet, model: str) -> None:
    """The same in Ollama's dialect."""
    async with fleet.direct(model) as engine:
        own = await engine.chat.completions.create(
            model=model, messages=ASKED, max_tokens=12, **SAME
        )
    options = {**SAME, "num_predict": 12}
    whole = await fleet.api.chat(model, ASKED, options=options)
    assert whole.message.content == own.choices[0].message.content
    assert (whole.done, whole.done_reason, whole.eval_count) == (True, "length", 12)
    assert own.usage is not None
    assert whole.prompt_eval_count == own.usage.prompt_tokens
    assert (whole.total_duration or 0) > 0

    lines = [p async for p in await fleet.api.chat(model, ASKED, stream=True, options=options)]
    assert "".join(line.message.content or "" for line in lines) == whole.message.content
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert (lines[-1].done_reason, lines[-1].eval_count) == ("length", 12)
    assert whole.model == lines[0].model == model


@pytest.mark.parametrize("model", CHATS)
async def test_cut_off_and_stopped(fleet: Fleet, model: str) -> None:
    """max_tokens ends an answer as ``length``, a stop word as ``stop``."""
    create = fleet.v1.chat.completions.create
    cut = await create(model=model, messages=ASKED, max_tokens=5, **SAME)
    words = (cut.choices[0].message.content or "").split()
    assert (len(words), cut.choices[0].finish_reason) == (5, "length")
    stop = f" {words[3]}"
    stopped = await create(model=model, messages=ASKED, max_tokens=50, stop=[stop], **SAME)
    assert (stopped.choices[0].message.content or "").split() == words[:3]
    assert stopped.choices[0].finish_reason == "stop"
    options = {**SAME, "num_predict": 50, "stop": [stop]}
    other = await fleet.api.chat(model, ASKED, options=options)
    assert (other.message.content or "").split() == words[:3]
    assert other.done_reason == "stop"


@pytest.mark.parametrize("model", CHATS)
async def test_completions(fleet: Fleet, model: str) -> None:
    """/v1/completions and /api/generate, streamed and not."""
    create = fleet.v1.completions.create
    whole = await create(model=model, prompt="one two", max_tokens=6, **SAME)
    text = whole.choices[0].text
    assert len(text.split()) == 6
    stream = await create(model=model, prompt="one two", max_tokens=6, stream=True, **SAME)
    assert "".join([c.choices[0].text async for c in stream if c.choices]) == text
    options = {**SAME, "num_predict": 6}
    generate = fleet.api.generate
    generated = await generate(model, "one two", options=options)
    assert len((generated.response or "").split()) == 6
    pieces = [p async for p in await generate(model, "one two", stream=True, options=options)]
    assert "".join(piece.response or "" for piece in pieces) == generated.response
    assert (pieces[-1].done_reason, pieces[-1].eval_count) == ("length", 6)


async def test_where_it_ran(fleet: Fleet) -> None:
    """The answer says which worker; each model has one."""
    create = fleet.v1.chat.completions.with_raw_response.create
    ran = {
        model: (await create(model=model, messages=ASKED, max_tokens=1)).headers["x-cogrid-worker"]
        for model in CHATS
    }
    assert ran == {"tiny": "esxi", "tiny-cpp": "ai-core"}


# Embeddings.


@pytest.mark.parametrize("model", EMBEDS)
async def test_embeddings(fleet: Fleet, model: str) -> None:
    """The engine's own vectors, in their order, in either dialect."""
    texts = ["a river", "the moon and the sea"]
    async with fleet.direct(model) as engine:
        own = await engine.embeddings.create(model=model, input=texts)
    # The library asks for base64 and unpacks it.
    given = await fleet.v1.embeddings.create(model=model, input=texts)
    plain = await fleet.v1.embeddings.create(model=model, input=texts, encoding_format="float")
    embedded = await fleet.api.embed(model, texts)
    vectors = [each.embedding for each in own.data]
    assert [len(vector) for vector in vectors] == [DIM, DIM]
    assert vectors[0] != pytest.approx(vectors[1], abs=1e-3)
    for found in (
        [each.embedding for each in given.data],
        [each.embedding for each in plain.data],
        embedded.embeddings,
    ):
        assert [pytest.approx(list(vector), abs=1e-5) for vector in found] == vectors
    assert [each.index for each in given.data] == [0, 1]
    assert given.usage.prompt_tokens > 0


async def test_what_a_model_cannot_do(fleet: Fleet) -> None:
    """A chat with a model that only embeds, and the reverse, is refused before it runs."""
    with pytest.raises(openai.BadRequestError, match="tiny-cpp-embed"):
        await fleet.v1.chat.completions.create(model="tiny-cpp-embed", messages=ASKED)
    with pytest.raises(openai.BadRequestError, match="tiny-cpp"):
        await fleet.v1.embeddings.create(model="tiny-cpp", input="a")
    with pytest.raises(ollama.ResponseError, match="tiny-cpp") as refused:
        await fleet.api.embed("tiny-cpp", "a")
    assert refused.value.status_code == 400


# Tool calls.


async def test_tool_call_of_ollama(fleet: Fleet) -> None:
    """A real call of a real engine; a grammar makes the random model write it."""
    called = await fleet.api.chat("tiny", ASKED, tools=[TOOL], format=CALL, options=SAME)
    assert _ollama_calls(called) == [("weather", {"city": "Bern"})]
    pieces = [
        piece
        async for piece in await fleet.api.chat(
            "tiny", ASKED, tools=[TOOL], format=CALL, options=SAME, stream=True
        )
    ]
    assert [call for piece in pieces for call in _ollama_calls(piece)] == _ollama_calls(called)

    schema: Any = {"type": "json_schema", "json_schema": {"name": "call", "schema": CALL}}
    create = fleet.v1.chat.completions.create
    asked = {"model": "tiny", "messages": ASKED, "tools": [TOOL], "response_format": schema, **SAME}
    choice = (await create(**asked)).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert _openai_calls(choice.message) == [("weather", {"city": "Bern"})]
    stream = await create(**asked, stream=True)
    assert await _streamed_calls(stream) == [("weather", {"city": "Bern"})]


async def test_tool_call_of_llama_cpp(fleet: Fleet) -> None:
    """It sends a call in many pieces. The token that begins one has to be made likely by hand, and
    the end behind it even more so, with fields that travel to it unchanged in both dialects."""
    pushed = {
        "tool_choice": "required",
        "logit_bias": {str(CALL_TOKEN): 60, str(END_TOKEN): 100},
        "max_tokens": 300,
        **SAME,
    }
    create = fleet.v1.chat.completions.create
    asked: dict[str, Any] = {"model": "tiny-cpp", "messages": ASKED, "tools": [TOOL], **pushed}
    choice = (await create(**asked)).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert _openai_calls(choice.message) == [("weather", {"city": "Bern"})]
    assert await _streamed_calls(await create(**asked, stream=True)) == [
        ("weather", {"city": "Bern"})
    ]
    called = await fleet.api.chat("tiny-cpp", ASKED, tools=[TOOL], options=pushed)
    assert _ollama_calls(called) == [("weather", {"city": "Bern"})]


@pytest.mark.parametrize("model", ["calls-ollama", "calls-openai"])
async def test_parallel_calls_and_their_results(fleet: Fleet, model: str) -> None:
    """Two calls in one answer keep their order and identity in either dialect, and the results go
    back to the engine in its own form."""
    engine = fleet.faulty[model]
    cities = [("weather", {"city": "Zürich"}), ("weather", {"city": "東京"})]
    engine.set(Mode.TOOL_CALLS)
    create = fleet.v1.chat.completions.create
    message = (await create(model=model, messages=ASKED, tools=[TOOL])).choices[0].message
    assert _openai_calls(message) == cities
    stream = await create(model=model, messages=ASKED, tools=[TOOL], stream=True)
    assert await _streamed_calls(stream) == cities
    called = await fleet.api.chat(model, ASKED, tools=[TOOL])
    assert _ollama_calls(called) == cities
    engine.switches.clear()

    ids = [call.id for call in message.tool_calls or ()]
    assert len(set(ids)) == 2
    results = [
        {"role": "tool", "tool_call_id": name, "content": said}
        for name, said in zip(ids, ("rain", "sun"), strict=True)
    ]
    turns: Any = [*ASKED, message.model_dump(exclude_none=True), *results]
    assert (await create(model=model, messages=turns)).choices[0].message.content
    call, *answers = _messages(engine)[1:]
    assert [answer["content"] for answer in answers] == ["rain", "sun"]
    arguments = [each["function"]["arguments"] for each in call["tool_calls"]]
    read = arguments if model == "calls-ollama" else [json.loads(text) for text in arguments]
    assert read == [arguments for _, arguments in cities]

    turns = [
        *ASKED,
        called.message,
        *({"role": "tool", "tool_name": "weather", "content": said} for said in ("rain", "sun")),
    ]
    assert (await fleet.api.chat(model, turns)).message.content
    call, *answers = _messages(engine)[1:]
    assert [answer["content"] for answer in answers] == ["rain", "sun"]
    if model == "calls-openai":
        assert [answer["tool_call_id"] for answer in answers] == [
            each["id"] for each in call["tool_calls"]
        ]


def _messages(engine: FaultEngine) -> list[Any]:
    """What the engine was told last."""
    told = engine.records.all[-1].body["messages"]
    assert isinstance(told, list)
    return told


def _openai_calls(message: Any) -> list[tuple[str, Any]]:
    calls = message.tool_calls or ()
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def _ollama_calls(answer: ollama.ChatResponse) -> list[tuple[str, Any]]:
    calls = answer.message.tool_calls or ()
    return [(call.function.name, dict(call.function.arguments)) for call in calls]


async def _streamed_calls(stream: Any) -> list[tuple[str, Any]]:
    """Puts the pieces together as clients do: by index, an id only with the first piece."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    reasons = []
    async for chunk in stream:
        for choice in chunk.choices:
            reasons.append(choice.finish_reason)
            for call in choice.delta.tool_calls or ():
                if call.id:
                    assert call.index not in names, "a call is begun twice"
                    names[call.index] = call.function.name
                    arguments[call.index] = ""
                arguments[call.index] += call.function.arguments or ""
    assert [reason for reason in reasons if reason] == ["tool_calls"]
    assert sorted(names) == list(range(len(names)))
    return [(names[index], json.loads(arguments[index])) for index in sorted(names)]
