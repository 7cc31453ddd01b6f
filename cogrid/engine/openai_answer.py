"""Reads OpenAI-style answers: server-sent events of the completions, the object of embeddings."""

from __future__ import annotations

from typing import Any

import msgspec

from cogrid.engine.answer import Answer
from cogrid.engine.api import Done, EngineError, Fault
from cogrid.engine.error_text import body_text, error_text
from cogrid.model.chat import Delta, ToolCall, Usage


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    function: _Function | None = None
    index: int | None = None
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None

    def thinking(self) -> str:
        """Servers name it one way or the other; some send both, saying the same."""
        thinking = self.reasoning_content or self.reasoning
        return thinking if isinstance(thinking, str) else ""


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Message | None = None
    message: _Message | None = None
    text: str | None = None
    logprobs: Any = None
    finish_reason: str | None = None


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Timings(msgspec.Struct):
    """llama.cpp's own, beside the usage."""

    prompt_ms: float = 0.0
    predicted_ms: float = 0.0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Counts | None = None
    timings: _Timings | None = None
    error: Any = None


class _Vector(msgspec.Struct):
    embedding: tuple[float, ...]
    index: int = 0


class _Embedded(msgspec.Struct):
    data: list[_Vector] = []
    usage: _Counts | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
_embedded = msgspec.json.Decoder(_Embedded)
_encode = msgspec.json.Encoder().encode

_REASONS = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}
_BROKEN = ("abort", "error")
"""Finish reasons by which vLLM and SGLang say that they gave the request up."""


class OpenAIAnswer(Answer):
    """An answer of the completions; it ends with ``[DONE]``, or with a finish reason where a server
    leaves that out."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0
        self._reason = ""
        self._counts = _Counts()
        self._timings = _Timings()

    def _read(self, whole: bytes) -> None:
        for line in whole.splitlines():
            data = _data(line)
            if data == b"[DONE]":
                self.done = self._end()
            elif data:
                self._take(_chunk.decode(data))

    def _unterminated(self) -> Done | None:
        """The usage comes behind the finish reason, so that is an end only where all is read."""
        return self._end() if self._reason else None

    def _end(self) -> Done:
        return Done(self._reason or "stop", _usage(self._counts, self._timings))

    def _take(self, chunk: _Chunk) -> None:
        if chunk.error is not None:
            raise EngineError(Fault.SERVER, f"failed: {error_text(chunk.error)}")
        self._counts = chunk.usage or self._counts
        self._timings = chunk.timings or self._timings
        for choice in chunk.choices or ():
            if choice.index == 0:  # cogrid asks for one answer
                self._choose(choice)

    def _choose(self, choice: _Choice) -> None:
        message = choice.delta or choice.message
        if message is None:
            self._joined.say("", choice.text, choice.logprobs)
        else:
            content = message.content or message.refusal
            self._joined.say(message.thinking(), content, choice.logprobs)
            if message.tool_calls:
                self._joined.calls(tuple(map(self._call, message.tool_calls)))
        reason = choice.finish_reason
        if reason in _BROKEN:
            raise EngineError(Fault.SERVER, f"gave the answer up ({reason})")
        if reason:
            self._reason = _REASONS.get(reason) or ("tool_calls" if self._calls else "stop")

    def _call(self, call: _Call) -> ToolCall:
        """A piece without an index belongs to the last call, unless it names a new one."""
        function = call.function or _Function()
        index = call.index
        if index is None:
            index = self._calls if call.id or function.name else max(0, self._calls - 1)
        self._calls = max(self._calls, index + 1)
        arguments = function.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = _encode(arguments).decode()
        return ToolCall(index, call.id or "", function.name or "", arguments or "")


def read_embedded(body: bytes) -> tuple[Delta, Done]:
    """The vectors of /v1/embeddings in the order of their inputs, and what they cost."""
    answer = _embedded.decode(body)
    if answer.error is not None:
        raise EngineError(Fault.SERVER, f"failed: {error_text(answer.error)}")
    vectors = sorted(answer.data, key=lambda vector: vector.index)
    usage = _usage(answer.usage or _Counts(), _Timings())
    return Delta(embeddings=tuple(v.embedding for v in vectors)), Done("stop", usage)


def _data(line: bytes) -> bytes:
    """What a line of an event carries; b"" for blank lines, comments, names and ids.

    A bare object is how servers answer that report an error, or do not stream, in spite of the
    request; ``error:`` is how older llama.cpp servers begin an error.
    """
    if line.startswith(b"data:"):
        return line[5:].strip()
    if line.startswith(b"error:"):
        raise EngineError(Fault.SERVER, f"failed: {body_text(line[6:])}")
    return line if line.startswith(b"{") else b""


def _usage(counts: _Counts, timings: _Timings) -> Usage:
    return Usage(
        prompt_tokens=counts.prompt_tokens or 0,
        completion_tokens=counts.completion_tokens or 0,
        prompt_s=timings.prompt_ms / 1e3,
        eval_s=timings.predicted_ms / 1e3,
    )
