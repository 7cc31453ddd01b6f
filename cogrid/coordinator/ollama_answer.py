"""Ollama's answers: one JSON object a line, or one object."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from cogrid.coordinator.gathered import Gathered
from cogrid.coordinator.voice import Speaker, Voice, encode, event
from cogrid.model.chat import Delta, End, ToolCall, Usage
from cogrid.model.task import Kind


class OllamaVoice(Voice):
    """Lines of one answer. Tool calls are whole in this dialect, so they come before the end."""

    content_type = b"application/x-ndjson"

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker)
        self._chat = speaker.kind is Kind.CHAT
        self._before = encode(self._head())[:-1]
        self._calls = Gathered()

    def piece(self, delta: Delta) -> bytes:
        if delta.tool_calls:
            self._calls.add_calls(delta.tool_calls)
            if not (delta.content or delta.thinking):
                return b""
        rest = b""
        if delta.logprobs is not None:
            rest = b',"logprobs":' + encode(_logprobs(delta.logprobs))
        return self._line(delta.content, delta.thinking, rest)

    def status(self, description: str, done: bool, hidden: bool) -> bytes:
        return self._line("", "", b',"event":' + encode(event(description, done, hidden)))

    def alive(self) -> bytes:
        return self._line("", "", b"")

    def end(self, end: End, ran: dict[str, Any]) -> bytes:
        calls = self._calls.tool_calls
        said = b""
        if calls:
            message = {
                "role": "assistant",
                "content": "",
                "tool_calls": [_call(call) for call in calls],
            }
            said = self._before + b',"message":' + encode(message) + b',"done":false}\n'
        last = {**self._head(), **self._said("", "", ()), **_last(end), "cogrid": ran}
        return said + encode(last) + b"\n"

    def whole(self, gathered: Gathered, end: End, ran: dict[str, Any]) -> bytes:
        if self.speaker.kind is Kind.EMBED:
            return self._embedded(gathered, end, ran)
        said = self._said(gathered.content, gathered.thinking, gathered.tool_calls)
        answer = {**self._head(), **said}
        if gathered.logprobs is not None:
            answer["logprobs"] = _logprobs(gathered.logprobs)
        return encode({**answer, **_last(end), "cogrid": ran})

    def loaded(self, how: str) -> bytes:
        """The answer to a request to load or unload a model."""
        answer = {**self._head(), **self._said("", "", ()), "done": True, "done_reason": how}
        return encode(answer)

    def _head(self) -> dict[str, Any]:
        at = datetime.fromtimestamp(self.speaker.created_s, UTC)
        return {"model": self.speaker.model, "created_at": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"}

    def _said(self, content: str, thinking: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
        if not self._chat:
            said: dict[str, Any] = {"response": content}
            if thinking:
                said["thinking"] = thinking
            return said
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if thinking:
            message["thinking"] = thinking
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        return {"message": message}

    def _line(self, content: str, thinking: str, rest: bytes) -> bytes:
        thought = b',"thinking":' + encode(thinking) if thinking else b""
        if self._chat:
            said = b',"message":{"role":"assistant","content":' + encode(content) + thought + b"}"
        else:
            said = b',"response":' + encode(content) + thought
        return b"".join((self._before, said, rest, b',"done":false}\n'))

    def _embedded(self, gathered: Gathered, end: End, ran: dict[str, Any]) -> bytes:
        if self.speaker.single:
            vector = gathered.embeddings[0] if gathered.embeddings else ()
            return encode({"embedding": vector, "cogrid": ran})
        answer = {
            "model": self.speaker.model,
            "embeddings": gathered.embeddings,
            "total_duration": _ns(end.usage.total_s),
            "load_duration": _ns(end.usage.load_s),
            "prompt_eval_count": end.usage.prompt_tokens,
            "cogrid": ran,
        }
        return encode(answer)


def _last(end: End) -> dict[str, Any]:
    reason = "length" if end.finish_reason == "length" else "stop"
    return {"done": True, "done_reason": reason, **_counts(end.usage)}


def _counts(usage: Usage) -> dict[str, int]:
    total_s = usage.total_s or usage.load_s + usage.prompt_s + usage.eval_s
    return {
        "total_duration": _ns(total_s),
        "load_duration": _ns(usage.load_s),
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": _ns(usage.prompt_s),
        "eval_count": usage.completion_tokens,
        "eval_duration": _ns(usage.eval_s),
    }


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _call(call: ToolCall) -> dict[str, Any]:
    """A call with its arguments as an object; text that is none is kept under a name."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {"arguments": call.arguments}
    function = {"index": call.index, "name": call.name, "arguments": arguments}
    return {"id": call.id, "function": function} if call.id else {"function": function}


def _logprobs(given: Any) -> Any:
    """OpenAI has the list of tokens under ``content``."""
    if isinstance(given, dict) and isinstance(given.get("content"), list):
        return given["content"]
    return given
