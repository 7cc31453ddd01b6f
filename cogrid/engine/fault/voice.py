"""How each dialect says things: pieces of an answer, its end, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from cogrid.model.chat import Delta, ToolCall, Usage

CREATED_AT = "2026-06-07T02:25:47.000000000Z"
CREATED = 1780799147


class Voice(Protocol):
    """content_type: of its streams. Everything is returned as bytes for one chunk."""

    @property
    def content_type(self) -> str: ...

    def piece(self, delta: Delta) -> bytes: ...

    def end(self, reason: str, usage: Usage) -> bytes: ...

    def error(self, text: str) -> bytes: ...

    def whole(self, said: Delta, reason: str, usage: Usage) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class OllamaVoice:
    """/api/chat, or with ``generate`` /api/generate."""

    model: str
    generate: bool = False
    content_type: str = "application/x-ndjson"

    def piece(self, delta: Delta) -> bytes:
        return _line(self._said(delta) | {"done": False})

    def end(self, reason: str, usage: Usage) -> bytes:
        return _line(self._said(Delta()) | self._end(reason, usage))

    def error(self, text: str) -> bytes:
        return _line({"error": text})

    def whole(self, said: Delta, reason: str, usage: Usage) -> dict[str, Any]:
        return self._said(said) | self._end(reason, usage)

    def _said(self, delta: Delta) -> dict[str, Any]:
        head: dict[str, Any] = {"model": self.model, "created_at": CREATED_AT}
        thinking = {"thinking": delta.thinking} if delta.thinking else {}
        if self.generate:
            return head | {"response": delta.content} | thinking
        message: dict[str, Any] = {"role": "assistant", "content": delta.content} | thinking
        if delta.tool_calls:
            message["tool_calls"] = [self._call(call) for call in delta.tool_calls]
        return head | {"message": message}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = msgspec.json.decode(call.arguments)
        return {"function": {"index": call.index, "name": call.name, "arguments": arguments}}

    def _end(self, reason: str, usage: Usage) -> dict[str, Any]:
        """Ollama has no reason of its own for tool calls."""
        counts = {
            "total_duration": round(usage.total_s * 1e9),
            "load_duration": round(usage.load_s * 1e9),
            "prompt_eval_count": usage.prompt_tokens,
            "eval_count": usage.completion_tokens,
        }
        told = {name: count for name, count in counts.items() if count}
        return {"done": True, "done_reason": "length" if reason == "length" else "stop"} | told


@dataclass(frozen=True, slots=True)
class OpenAIVoice:
    """/v1/chat/completions, or with ``generate`` /v1/completions."""

    model: str
    generate: bool = False
    include_usage: bool = False
    content_type: str = "text/event-stream"

    def piece(self, delta: Delta) -> bytes:
        if delta.tool_calls:
            return b"".join(self._pieces_of_calls(delta.tool_calls))
        if self.generate:
            return self._event({"text": delta.content, "finish_reason": None})
        said: dict[str, Any] = {"content": delta.content or None}
        if delta.thinking:
            said["reasoning_content"] = delta.thinking
        return self._event({"delta": said, "finish_reason": None})

    def end(self, reason: str, usage: Usage) -> bytes:
        empty: dict[str, Any] = {"text": ""} if self.generate else {"delta": {}}
        events = self._event(empty | {"finish_reason": reason})
        if self.include_usage:
            events += _event(self._head() | {"choices": [], "usage": _counts(usage)})
        return events + b"data: [DONE]\n\n"

    def error(self, text: str) -> bytes:
        return _event({"error": {"message": text, "type": "server_error", "code": 500}})

    def whole(self, said: Delta, reason: str, usage: Usage) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if self.generate:
            choice["text"] = said.content
        else:
            message: dict[str, Any] = {"role": "assistant", "content": said.content or None}
            if said.thinking:
                message["reasoning_content"] = said.thinking
            if said.tool_calls:
                message["tool_calls"] = [_call(call, call.arguments) for call in said.tool_calls]
            choice["message"] = message
        return self._head() | {"choices": [choice], "usage": _counts(usage)}

    def _pieces_of_calls(self, calls: tuple[ToolCall, ...]) -> list[bytes]:
        """Each call's name, then the arguments of all of them in turns and in halves."""
        pieces = [_call(call, "") for call in calls]
        for half in (0, 1):
            for call in calls:
                middle = len(call.arguments) // 2
                text = call.arguments[middle:] if half else call.arguments[:middle]
                pieces.append({"index": call.index, "function": {"arguments": text}})
        return [
            self._event({"delta": {"tool_calls": [piece]}, "finish_reason": None})
            for piece in pieces
        ]

    def _event(self, choice: dict[str, Any]) -> bytes:
        return _event(self._head() | {"choices": [{"index": 0} | choice]})

    def _head(self) -> dict[str, Any]:
        kind = "text_completion" if self.generate else "chat.completion.chunk"
        return {"id": "fault-1", "object": kind, "created": CREATED, "model": self.model}


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"index": call.index, "id": call.id, "type": "function", "function": function}


def _counts(usage: Usage) -> dict[str, int]:
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
