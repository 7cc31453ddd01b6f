"""Ways to ask an engine in tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from cogrid.engine.api import Done, Engine, EngineError
from cogrid.model.chat import Delta, Dialect, Request
from cogrid.model.task import Kind

MODEL = "gemma3:1b"

_USUAL: dict[Kind, dict[str, Any]] = {
    Kind.CHAT: {"messages": [{"role": "user", "content": "hello you"}]},
    Kind.GENERATE: {"prompt": "hello you"},
    Kind.EMBED: {"input": ["one", "two words"]},
}


def a_request(
    kind: Kind = Kind.CHAT,
    dialect: Dialect = Dialect.OPENAI,
    model: str = MODEL,
    **payload: Any,
) -> Request:
    """A request as the coordinator would make it."""
    return Request(kind, dialect, model, {"model": model} | (payload or _USUAL[kind]))


async def read(engine: Engine, request: Request | None = None) -> tuple[list[Delta], Done]:
    """A whole answer: its deltas and its end, which is the last thing and there once."""
    async with aclosing(engine.stream(request or a_request())) as items:
        *deltas, done = [item async for item in items]
    assert isinstance(done, Done)
    assert all(isinstance(delta, Delta) for delta in deltas)
    return [delta for delta in deltas if isinstance(delta, Delta)], done


async def fail(engine: Engine, request: Request | None = None) -> tuple[list[Delta], EngineError]:
    """An answer that fails: the deltas before that, and how."""
    deltas: list[Delta] = []
    try:
        async with aclosing(engine.stream(request or a_request())) as items:
            async for item in items:
                assert isinstance(item, Delta)
                deltas.append(item)
    except EngineError as error:
        return deltas, error
    raise AssertionError(f"it did not fail but said {deltas}")


def text(deltas: Sequence[Delta]) -> str:
    """All that was said."""
    return "".join(delta.content for delta in deltas)


def thinking(deltas: Sequence[Delta]) -> str:
    """All that was thought."""
    return "".join(delta.thinking for delta in deltas)


def calls(deltas: Sequence[Delta]) -> dict[int, tuple[str, str, str]]:
    """Tool calls put together: index -> id, name, arguments."""
    whole: dict[int, tuple[str, str, str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        call_id, name, arguments = whole.get(call.index, ("", "", ""))
        whole[call.index] = (call_id or call.id, name or call.name, arguments + call.arguments)
    return whole
