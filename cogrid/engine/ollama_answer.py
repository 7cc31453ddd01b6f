"""Reads Ollama's answers: NDJSON lines of /api/chat and /api/generate, the object of /api/embed."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import msgspec

from cogrid.engine.answer import Answer
from cogrid.engine.api import Done, EngineError, Fault
from cogrid.engine.error_text import error_text
from cogrid.model.chat import Delta, ToolCall, Usage


class _Function(msgspec.Struct):
    name: str = ""
    arguments: Any = None
    index: int | None = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Counts(msgspec.Struct):
    """Durations are in ns; whatever is zero is left out by the server."""

    prompt_eval_count: int = 0
    eval_count: int = 0
    load_duration: int = 0
    prompt_eval_duration: int = 0
    eval_duration: int = 0
    total_duration: int = 0

    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_eval_count,
            completion_tokens=self.eval_count,
            load_s=self.load_duration / 1e9,
            prompt_s=self.prompt_eval_duration / 1e9,
            eval_s=self.eval_duration / 1e9,
            total_s=self.total_duration / 1e9,
        )


class _Line(_Counts):
    message: _Message | None = None
    response: str | None = None
    thinking: str | None = None
    logprobs: Any = None
    done: bool = False
    done_reason: str | None = None
    error: Any = None


class _Embedded(_Counts):
    embeddings: tuple[tuple[float, ...], ...] = ()
    error: Any = None


_line = msgspec.json.Decoder(_Line)
_embedded = msgspec.json.Decoder(_Embedded)
_encode = msgspec.json.Encoder().encode


class OllamaAnswer(Answer):
    """An answer of /api/chat or /api/generate; it ends with ``"done": true``."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def _read(self, whole: bytes) -> None:
        for raw in whole.splitlines():
            if not raw.strip():
                continue
            line = _line.decode(raw)
            if line.error is not None:
                raise EngineError(Fault.SERVER, f"failed: {error_text(line.error)}")
            message = line.message
            if message is None:
                self._joined.say(line.thinking, line.response, line.logprobs)
            else:
                self._joined.say(message.thinking, message.content, line.logprobs)
                if message.tool_calls:
                    self._joined.calls(tuple(map(self._call, message.tool_calls)))
            if line.done:
                self.done = Done(self._reason(line.done_reason), line.usage())

    def _call(self, call: _Call) -> ToolCall:
        """Older servers give calls no id, and OpenAI's clients cannot do without."""
        index = self._calls if call.function.index is None else call.function.index
        self._calls = max(self._calls, index + 1)
        arguments = _encode(call.function.arguments or {}).decode()
        return ToolCall(index, call.id or f"call_{token_hex(6)}", call.function.name, arguments)

    def _reason(self, reason: str | None) -> str:
        if reason == "length":
            return "length"
        return "tool_calls" if self._calls else "stop"


def read_embedded(body: bytes) -> tuple[Delta, Done]:
    """The vectors of /api/embed, and what they cost."""
    answer = _embedded.decode(body)
    if answer.error is not None:
        raise EngineError(Fault.SERVER, f"failed: {error_text(answer.error)}")
    return Delta(embeddings=answer.embeddings), Done("stop", answer.usage())
