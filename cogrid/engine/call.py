"""What goes out to an engine for one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.engine.api import EngineError, Fault


@dataclass(frozen=True, slots=True)
class Call:
    """A POST. path: behind the engine's URL. body: becomes JSON. streams: the answer is a stream
    of deltas and not one object."""

    path: str
    body: dict[str, Any]
    streams: bool = True


def plainer(call: Call, status: int, text: str) -> Call | None:
    """The call without what the engine says that it cannot do, or None if it says no such thing.

    Chat clients send tools, or a wish to think, with everything they ask, whatever the model; a
    chat is worth more than either. The words must be looked at because the status is that of every
    refusal: Ollama "does not support tools", llama.cpp "tools param requires --jinja flag" (a 500),
    vLLM '"auto" tool choice requires --enable-auto-tool-choice'.
    """
    if status not in (400, 422, 500, 501):
        return None
    text = text.lower()
    for words, fields in _FEATURES:
        gone = [name for name in fields if name in call.body]
        if gone and any(word in text for word in words):
            body = {name: value for name, value in call.body.items() if name not in gone}
            return Call(call.path, body, call.streams)
    return None


_FEATURES = (
    (("tool",), ("tools", "tool_choice", "parallel_tool_calls")),
    (("think", "reasoning"), ("think", "reasoning_effort", "reasoning")),
)


def refused(message: str, hint: str) -> EngineError:
    """The error for a request that cannot be put to any engine of this kind."""
    return EngineError(Fault.REFUSED, message, hint, 400)


def items(value: Any, what: str) -> list[Any]:
    """A field that holds a list; nothing is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise refused(f"{what} is not a list", f"write {what} as [ … ]")
    return value
