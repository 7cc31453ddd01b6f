"""What an answer of the fault engine consists of: a pure function of request and switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.engine.fault.switch import Mode, Switch
from cogrid.model.chat import Delta, ToolCall

TOKENS = 8
BIG_BYTES = 300_000
CALLS = (
    ToolCall(0, "call_0", "weather", '{"city":"Zürich"}'),
    ToolCall(1, "call_1", "weather", '{"city":"東京"}'),
)


@dataclass(frozen=True, slots=True)
class Script:
    """The pieces in their order, and how the answer ends behind them."""

    pieces: tuple[Delta, ...]
    reason: str
    prompt_tokens: int


def script(body: dict[str, Any], met: dict[Mode, Switch], tokens: int = TOKENS) -> Script:
    """tokens: how many an answer has where no switch says otherwise. Tokens are the numbers from 0
    on, so that one that is missing or said twice is seen."""
    wanted = met[Mode.TOKENS].after if Mode.TOKENS in met else tokens
    pieces, reason = _pieces(body, met, wanted), "stop"
    if Mode.TOOL_CALLS in met:
        reason = "tool_calls"
    limit = _limit(body)
    if limit is not None and limit < len(pieces):
        pieces, reason = pieces[:limit], "length"
    return Script(pieces, reason, len(_prompt(body).split()))


def _pieces(body: dict[str, Any], met: dict[Mode, Switch], tokens: int) -> tuple[Delta, ...]:
    if Mode.THINKING in met:
        return tuple(Delta(thinking=f"{n} ") for n in range(tokens))
    if Mode.TOOL_CALLS in met:
        return (Delta(tool_calls=CALLS),)
    if Mode.BIG_DELTA in met:
        return (Delta(content="x" * BIG_BYTES),)
    if Mode.SPLIT in met:
        return tuple(Delta(content=f"{n}語😀 ") for n in range(tokens))
    if Mode.ECHO in met:
        return tuple(Delta(content=f"{word} ") for word in _last(body).split())
    return tuple(Delta(content=f"{n} ") for n in range(tokens))


def _limit(body: dict[str, Any]) -> int | None:
    options = body.get("options")
    asked = (
        options.get("num_predict") if isinstance(options, dict) else None,
        body.get("max_tokens"),
        body.get("max_completion_tokens"),
    )
    return next((n for n in asked if isinstance(n, int) and n > 0), None)


def _prompt(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return str(body.get("prompt", ""))
    return " ".join(_text(message) for message in messages)


def _last(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    return _text(messages[-1]) if messages else str(body.get("prompt", ""))


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else ""
    if isinstance(content, list):
        return " ".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""
