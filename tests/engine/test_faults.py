"""Every way in which the fault engine fails, in both dialects."""

from __future__ import annotations

import pytest

from cogrid.engine.api import Engine, EngineError, Fault
from cogrid.engine.fault import FaultEngine, Mode
from cogrid.engine.fault.script import BIG_BYTES
from cogrid.engine.find import open_engine
from cogrid.model.chat import Dialect
from cogrid.model.task import Kind
from tests.engine.asking import MODEL, a_request, calls, fail, read, text, thinking


async def test_a_whole_answer(engine: Engine) -> None:
    deltas, done = await read(engine)
    assert text(deltas) == "0 1 2 3 4 5 6 7 "
    assert done.finish_reason == "stop"
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (2, 8)
    assert 0 < done.usage.total_s < 5


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("kind", [Kind.CHAT, Kind.GENERATE])
async def test_every_dialect_to_every_engine(engine: Engine, kind: Kind, dialect: Dialect) -> None:
    deltas, done = await read(engine, a_request(kind, dialect))
    assert text(deltas) == "0 1 2 3 4 5 6 7 "
    assert done.usage.prompt_tokens == 2


@pytest.mark.parametrize("dialect", Dialect)
async def test_embeddings_come_in_one_delta(engine: Engine, dialect: Dialect) -> None:
    (delta,), done = await read(engine, a_request(Kind.EMBED, dialect, "bge-m3"))
    assert len(delta.embeddings) == 2
    assert delta.embeddings[0] != delta.embeddings[1]
    assert sum(x * x for x in delta.embeddings[0]) == pytest.approx(1)
    assert done.usage.prompt_tokens == 3


@pytest.mark.parametrize(
    ("mode", "kind", "status"),
    [
        (Mode.SERVER_ERROR, Fault.SERVER, 500),
        (Mode.HTML_ERROR, Fault.SERVER, 502),
        (Mode.BUSY, Fault.BUSY, 503),
        (Mode.MISSING, Fault.MISSING, 404),
        (Mode.REFUSE, Fault.REFUSED, 400),
    ],
)
@pytest.mark.parametrize("asked", [Kind.CHAT, Kind.EMBED])
async def test_refusals(
    engine: Engine, fault: FaultEngine, mode: Mode, kind: Fault, status: int, asked: Kind
) -> None:
    fault.set(mode)
    deltas, error = await fail(engine, a_request(asked))
    assert (deltas, error.fault, error.status) == ([], kind, status)
    assert error.retryable is (kind is not Fault.REFUSED)
    assert fault.url in error.message
    assert MODEL in error.message
    assert "<" not in error.message


async def test_unknown_model(engine: Engine) -> None:
    _, error = await fail(engine, a_request(model="nope"))
    assert error.fault is Fault.MISSING
    assert "no model 'nope'" in error.message


@pytest.mark.parametrize("mode", [Mode.CUT, Mode.UNFINISHED])
@pytest.mark.parametrize("after", [0, 3, 8])
async def test_cut(engine: Engine, fault: FaultEngine, mode: Mode, after: int) -> None:
    fault.set(mode, after=after)
    deltas, error = await fail(engine)
    assert error.fault is Fault.CUT
    assert text(deltas) == "".join(f"{n} " for n in range(after))


@pytest.mark.parametrize("mode", [Mode.ERROR_LINE, Mode.GARBAGE])
@pytest.mark.parametrize("after", [0, 3])
async def test_error_in_the_stream(
    engine: Engine, fault: FaultEngine, mode: Mode, after: int
) -> None:
    fault.set(mode, after=after)
    deltas, error = await fail(engine)
    assert error.fault is Fault.SERVER
    assert text(deltas) == "".join(f"{n} " for n in range(after))
    if mode is Mode.ERROR_LINE:
        assert "unexpected EOF" in error.message


async def test_error_in_the_stream_loses_nothing_that_came_with_it(fault: FaultEngine) -> None:
    """The tokens before an error are the client's, even where one packet brought both."""
    fault.set(Mode.ERROR_LINE, after=7)
    for kind in ("ollama", "openai"):
        engine = open_engine(kind, fault.url)
        deltas, _ = await fail(engine)
        assert text(deltas) == "0 1 2 3 4 5 6 "
        await engine.aclose()


async def test_refused_connection(engine: Engine, fault: FaultEngine) -> None:
    await fault.stop()
    _, error = await fail(engine)
    assert (error.fault, error.status) == (Fault.UNREACHABLE, 0)
    assert "cannot be reached" in error.message
    with pytest.raises(EngineError) as caught:
        await engine.listed()
    assert caught.value.fault is Fault.UNREACHABLE


async def test_unknown_host() -> None:
    engine = open_engine("ollama", "http://nowhere.invalid:1")
    _, error = await fail(engine)
    assert error.fault is Fault.UNREACHABLE
    await engine.aclose()


async def test_comes_back(engine: Engine, fault: FaultEngine) -> None:
    """A restart of the engine breaks what ran, and the next request is well."""
    await read(engine)
    await fault.stop()
    await fault.start()
    deltas, _ = await read(engine)
    assert text(deltas) == "0 1 2 3 4 5 6 7 "


async def test_thinking_only(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.THINKING)
    deltas, done = await read(engine)
    assert (text(deltas), thinking(deltas)) == ("", "0 1 2 3 4 5 6 7 ")
    assert done.finish_reason == "stop"


async def test_parallel_tool_calls(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.TOOL_CALLS)
    deltas, done = await read(engine)
    whole = calls(deltas)
    assert [whole[n][1:] for n in (0, 1)] == [
        ("weather", '{"city":"Zürich"}'),
        ("weather", '{"city":"東京"}'),
    ]
    assert whole[0][0]
    assert whole[0][0] != whole[1][0]
    assert done.finish_reason == "tool_calls"


async def test_big_delta(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.BIG_DELTA)
    deltas, _ = await read(engine)
    assert text(deltas) == "x" * BIG_BYTES


async def test_cut_inside_a_character(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.SPLIT)
    deltas, _ = await read(engine)
    assert text(deltas) == "".join(f"{n}語😀 " for n in range(8))


@pytest.mark.parametrize("dialect", Dialect)
async def test_limit_of_tokens(engine: Engine, dialect: Dialect) -> None:
    limit = {"max_tokens": 3} if dialect is Dialect.OPENAI else {"options": {"num_predict": 3}}
    messages = [{"role": "user", "content": "hi"}]
    deltas, done = await read(engine, a_request(dialect=dialect, messages=messages, **limit))
    assert text(deltas) == "0 1 2 "
    assert (done.finish_reason, done.usage.completion_tokens) == ("length", 3)


async def test_slow_first_token_is_waited_for(engine: Engine, fault: FaultEngine) -> None:
    fault.set(Mode.SLOW_FIRST, seconds=0.1)
    _, done = await read(engine)
    assert done.usage.total_s >= 0.1


async def test_without_tools_where_they_are_refused(fault: FaultEngine) -> None:
    """Open WebUI sends its tools, and a wish to think, to every model."""
    engine = open_engine("ollama", fault.url)
    request = a_request(
        model="plain",
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"type": "function", "function": {"name": "clock"}}],
        reasoning_effort="high",
    )
    deltas, _ = await read(engine, request)
    assert text(deltas) == "0 1 2 3 4 5 6 7 "
    bodies = [record.body for record in fault.records.all]
    assert [sorted({"tools", "think"} & set(body)) for body in bodies] == [
        ["think", "tools"],
        ["think"],
        [],
    ]
    await engine.aclose()


async def test_empty_tools_are_not_sent(engine: Engine, fault: FaultEngine) -> None:
    messages = [{"role": "user", "content": "hi"}]
    for dialect in Dialect:
        await read(engine, a_request(dialect=dialect, messages=messages, tools=[]))
    assert all("tools" not in record.body for record in fault.records.all)
