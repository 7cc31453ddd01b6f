"""Finding engines, and what is asked of them besides answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from cogrid import __version__
from cogrid.engine import find, link, ollama
from cogrid.engine.api import Engine, EngineError, Fault, Listed
from cogrid.engine.demo import DemoEngine
from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from cogrid.engine.find import open_engine
from cogrid.errors import UsageError
from cogrid.model.chat import Delta
from cogrid.model.task import Kind
from tests.engine.asking import a_request, fail, read
from tests.engine.wire import server, silent


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine of the machine itself is ever asked."""
    monkeypatch.setattr(find, "USUAL_PORTS", {1: "nothing"})
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.delenv("OLLAMA_NUM_PARALLEL", raising=False)


@pytest.mark.parametrize(
    ("dialect", "kind"), [("ollama", "ollama"), ("openai", "openai"), ("both", "ollama")]
)
async def test_kind_by_asking(dialect: str, kind: str) -> None:
    async with FaultEngine(dialect=dialect) as fault:
        for url in (fault.url, f"{fault.url}/v1/", fault.url.removeprefix("http://")):
            engine = await find.find(url)
            assert (engine.kind, engine.url) == (kind, fault.url)
            await engine.aclose()


async def test_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the usual ports that answers, not the first to answer."""
    async with FaultEngine(dialect="openai") as one, FaultEngine(dialect="ollama") as other:
        ports = [int(fault.url.rpartition(":")[2]) for fault in (one, other)]
        monkeypatch.setattr(
            find, "USUAL_PORTS", {1: "-", ports[0]: "llama.cpp", ports[1]: "Ollama"}
        )
        assert (await find.find()).url == one.url
        monkeypatch.setenv("OLLAMA_HOST", f"0.0.0.0:{ports[1]}/")
        assert (await find.find()).url == other.url


async def test_nothing_here() -> None:
    with pytest.raises(EngineError) as caught:
        await find.find()
    assert caught.value.fault is Fault.UNREACHABLE
    assert "nothing (1)" in caught.value.message
    assert "--engine" in caught.value.hint


async def test_nothing_there() -> None:
    with pytest.raises(EngineError, match="cannot be reached") as caught:
        await find.find("http://127.0.0.1:1")
    assert caught.value.fault is Fault.UNREACHABLE


async def test_silence() -> None:
    async with server(silent) as url:
        with pytest.raises(EngineError, match="nothing answers") as caught:
            await find.find(url, timeout_s=0.05)
        assert caught.value.fault is Fault.UNREACHABLE


async def test_something_else() -> None:
    async with FaultEngine(dialect="ollama") as fault:
        with pytest.raises(EngineError, match="neither Ollama nor"):
            await find.find(f"{fault.url}/elsewhere")


@pytest.mark.parametrize("address", ["", "ftp://host", "http://", "http://host:port"])
async def test_no_address(address: str) -> None:
    with pytest.raises(UsageError):
        await find.find(address)


async def test_ollama_host_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "host:port")
    with pytest.raises(UsageError, match="OLLAMA_HOST"):
        await find.find()


async def test_kinds() -> None:
    assert isinstance(open_engine("demo", "demo:"), DemoEngine)
    assert isinstance(await find.find("demo"), DemoEngine)
    with pytest.raises(UsageError):
        open_engine("vllm", "http://127.0.0.1:1")


MODELS = (
    FaultModel("a:latest", ("completion", "vision"), size_bytes=5, vram_bytes=3, context=99),
    FaultModel("hf.co/Org/Model-GGUF:Q4_K_M", ("completion", "tools", "insert")),
    FaultModel("bge-m3", ("embedding",)),
)


@pytest.fixture
async def fleet() -> AsyncIterator[FaultEngine]:
    async with FaultEngine(MODELS, parallel=3) as fault:
        yield fault


@pytest.fixture
async def opened(fleet: FaultEngine) -> AsyncIterator[Engine]:
    engine = open_engine("ollama", fleet.url)
    yield engine
    await engine.aclose()


async def test_ollama_lists(fleet: FaultEngine, opened: Engine) -> None:
    await opened.probe(Listed("a"))
    assert await opened.listed() == (
        Listed("a", MODELS[0].digest, 5, ("chat", "vision"), True, 3, 99),
        Listed("hf.co/Org/Model-GGUF:Q4_K_M", MODELS[1].digest, 1_000_000,
               ("chat", "tools"), False, 0, 4096),
        Listed("bge-m3", MODELS[2].digest, 1_000_000, ("embed",), False, 0, 4096),
    )  # fmt: skip
    assert await opened.gpu() is True


async def test_openai_lists(fleet: FaultEngine) -> None:
    engine = open_engine("openai", fleet.url)
    listed = await engine.listed()
    assert [(model.name, model.supports[0], model.loaded) for model in listed] == [
        ("a", "chat", True),
        ("hf.co/Org/Model-GGUF:Q4_K_M", "chat", True),
        ("bge-m3", "embed", True),
    ]
    await read(engine, a_request(model="a"))
    assert fleet.records.all[-1].model == "a:latest", "asked for by the engine's own spelling"
    assert await engine.parallel() == 3
    await engine.aclose()


async def test_probes(fleet: FaultEngine, opened: Engine) -> None:
    for model in await opened.listed():
        await opened.probe(model)
    asked = [(record.path, record.body.get("options")) for record in fleet.records.all]
    assert asked == [
        ("/api/chat", {"num_predict": 1}),
        ("/api/chat", {"num_predict": 1}),
        ("/api/embed", None),
    ]
    assert [record.tokens for record in fleet.records.all] == [1, 1, 0]
    fleet.set(Mode.SERVER_ERROR)
    with pytest.raises(EngineError):
        await opened.probe(Listed("a"))


async def test_what_a_model_can_do_is_asked_once(
    fleet: FaultEngine, opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    post = link.Link.post

    async def counted(self: link.Link, path: str, body: dict[str, object]) -> dict[str, object]:
        asked.append(str(body["model"]))
        return await post(self, path, body)

    monkeypatch.setattr(link.Link, "post", counted)
    await opened.listed()
    await opened.listed()
    assert asked == ["a:latest", "hf.co/Org/Model-GGUF:Q4_K_M", "bge-m3:latest"]


async def test_a_wedged_ps_is_not_waited_for(
    fleet: FaultEngine, opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "ANSWER_S", 0.05)
    fleet.set(Mode.WEDGED_PS)
    with pytest.raises(EngineError, match="/api/ps within") as caught:
        await opened.listed()
    assert caught.value.fault is Fault.UNREACHABLE


async def test_slow_answers_about_models_leave_chat_models(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def post(self: link.Link, path: str, body: object) -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(link.Link, "post", post)
    monkeypatch.setattr(ollama, "ANSWER_S", 0.05)
    assert {model.supports for model in await opened.listed()} == {("chat",)}


async def test_loading_takes_its_time_once() -> None:
    async with FaultEngine([FaultModel("a", load_s=0.1)]) as fault:
        engine = open_engine("ollama", fault.url)
        loads = [(await read(engine, a_request(model="a")))[1].usage.load_s for _ in range(2)]
        assert loads[0] >= 0.1
        assert loads[1] == 0
        assert [model.loaded for model in await engine.listed()] == [True]
        await engine.aclose()


async def test_ollama_parallel(opened: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await opened.parallel() == 1
    monkeypatch.setenv("OLLAMA_NUM_PARALLEL", "4")
    assert await opened.parallel() == 4


async def test_versions(fleet: FaultEngine, opened: Engine) -> None:
    assert await opened.version() == __version__
    engine = open_engine("openai", fleet.url)
    assert await engine.version() == __version__
    await engine.aclose()


async def test_the_demonstration() -> None:
    engine = DemoEngine(delay_s=0.001)
    request = a_request(model="demo-echo")
    deltas, done = await read(engine, request)
    said = [delta.content for delta in deltas]
    assert "".join(said) == "This is a demonstration, no model is running. You said: hello you"
    assert len(said) == done.usage.completion_tokens == 12
    assert done.usage.prompt_tokens == 2
    assert done.usage.total_s >= 0.012
    (whole,), _ = await read(DemoEngine(delay_s=0), request)
    assert whole.content == "".join(said)
    _, error = await fail(engine)
    assert error.fault is Fault.MISSING
    await engine.probe((await engine.listed())[0])


async def test_the_demonstration_obeys_limits_and_embeds() -> None:
    engine = DemoEngine(delay_s=0)
    messages = [{"role": "user", "content": "hi"}]
    request = a_request(model="demo-echo", messages=messages, max_tokens=2)
    deltas, done = await read(engine, request)
    assert deltas == [Delta(content="This is")]
    assert done.finish_reason == "length"
    (vectors,), _ = await read(engine, a_request(Kind.EMBED, model="demo-echo"))
    assert len(vectors.embeddings) == 2


async def test_the_demonstrations_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGRID_DEMO_DELAY_MS", "0")
    deltas, _ = await read(DemoEngine(), a_request(model="demo-echo"))
    assert len(deltas) == 1
