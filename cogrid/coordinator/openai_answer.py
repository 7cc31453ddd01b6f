"""OpenAI's answers: server-sent events, whole objects, embeddings."""

from __future__ import annotations

import base64
from array import array
from sys import byteorder
from typing import Any

from cogrid.coordinator.gathered import Gathered
from cogrid.coordinator.voice import Speaker, Voice, encode, event
from cogrid.model.chat import Delta, End, ToolCall, Usage
from cogrid.model.task import Kind

_OBJECT = {Kind.CHAT: "chat.completion", Kind.GENERATE: "text_completion"}
_CHUNK = {Kind.CHAT: "chat.completion.chunk", Kind.GENERATE: "text_completion"}
_PREFIX = {Kind.CHAT: "chatcmpl", Kind.GENERATE: "cmpl", Kind.EMBED: "embd"}


class OpenAIVoice(Voice):
    """Chunks of one answer. The first one names the role."""

    content_type = b"text/event-stream; charset=utf-8"

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker)
        self._chat = speaker.kind is Kind.CHAT
        head = encode(self._head(_CHUNK.get(speaker.kind, "")))
        self._before = b"data: " + head[:-1] + b',"choices":[{"index":0,'
        self._role = b'"role":"assistant",' if self._chat else b""
        self._called: set[int] = set()

    def piece(self, delta: Delta) -> bytes:
        rest = b""
        if delta.logprobs is not None:
            rest = b',"logprobs":' + encode(_logprobs(delta.logprobs, self._chat))
        if not self._chat:
            return self._chunk(b'"text":' + encode(delta.content), rest)
        fields = []
        if delta.thinking:
            fields.append(b'"reasoning_content":' + encode(delta.thinking))
        if delta.tool_calls:
            calls = [self._call(call) for call in delta.tool_calls]
            fields.append(b'"tool_calls":' + encode(calls))
        if delta.content or not fields:
            fields.insert(0, b'"content":' + encode(delta.content))
        return self._chunk(b",".join(fields), rest)

    def status(self, description: str, done: bool, hidden: bool) -> bytes:
        said = encode(event(description, done, hidden))
        return self._chunk(self._nothing(), b"", b',"event":' + said)

    def alive(self) -> bytes:
        return b": waiting\n\n"

    def end(self, end: End, ran: dict[str, Any]) -> bytes:
        told = b',"cogrid":' + encode(ran)
        reason = encode(_reason(end, bool(self._called)))
        said = b"" if self._chat else b'"text":""'
        parts = [self._chunk(said, b',"finish_reason":' + reason, told, last=True)]
        if self.speaker.include_usage:
            usage = {
                **self._head(_CHUNK[self.speaker.kind]),
                "choices": [],
                "usage": usage_of(end.usage),
                "cogrid": ran,
            }
            parts.append(b"data: " + encode(usage) + b"\n\n")
        parts.append(b"data: [DONE]\n\n")
        return b"".join(parts)

    def whole(self, gathered: Gathered, end: End, ran: dict[str, Any]) -> bytes:
        if self.speaker.kind is Kind.EMBED:
            return self._embedded(gathered, end, ran)
        choice: dict[str, Any] = {"index": 0}
        if self._chat:
            choice["message"] = self._message(gathered)
        else:
            choice["text"] = gathered.content
        choice["logprobs"] = (
            None if gathered.logprobs is None else _logprobs(gathered.logprobs, self._chat)
        )
        choice["finish_reason"] = _reason(end, bool(gathered.tool_calls))
        answer = {
            **self._head(_OBJECT[self.speaker.kind]),
            "choices": [choice],
            "usage": usage_of(end.usage),
            "cogrid": ran,
        }
        return encode(answer)

    def _head(self, kind: str) -> dict[str, Any]:
        speaker = self.speaker
        return {
            "id": f"{_PREFIX[speaker.kind]}-{speaker.task}",
            "object": kind,
            "created": int(speaker.created_s),
            "model": speaker.model,
        }

    def _nothing(self) -> bytes:
        return b'"content":""' if self._chat else b'"text":""'

    def _chunk(self, said: bytes, rest: bytes, beside: bytes = b"", last: bool = False) -> bytes:
        """rest: further fields of the choice. beside: further fields of the chunk."""
        ending = b"" if last else b',"finish_reason":null'
        if not self._chat:
            return b"".join((self._before, said, rest, ending, b"}]", beside, b"}\n\n"))
        role, self._role = self._role, b""
        if role and not said:
            role = role[:-1]
        parts = (
            self._before, b'"delta":{', role, said, b"}", rest, ending, b"}]", beside, b"}\n\n"
        )  # fmt: skip
        return b"".join(parts)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """A piece of a call; its first one always has an id, which some engines do not give."""
        piece: dict[str, Any] = {"index": call.index}
        if call.index not in self._called:
            self._called.add(call.index)
            piece["id"] = call.id or self._call_id(call.index)
            piece["type"] = "function"
        function: dict[str, Any] = {"name": call.name} if call.name else {}
        function["arguments"] = call.arguments
        piece["function"] = function
        return piece

    def _call_id(self, index: int) -> str:
        return f"call_{self.speaker.task[:12]}_{index}"

    def _message(self, gathered: Gathered) -> dict[str, Any]:
        calls = gathered.tool_calls
        content = gathered.content
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if gathered.thinking:
            message["reasoning_content"] = gathered.thinking
        if calls:
            message["content"] = content or None
            message["tool_calls"] = [
                {
                    "id": call.id or self._call_id(call.index),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        return message

    def _embedded(self, gathered: Gathered, end: End, ran: dict[str, Any]) -> bytes:
        pack = _packed if self.speaker.base64 else list
        answer = {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": pack(vector)}
                for index, vector in enumerate(gathered.embeddings)
            ],
            "model": self.speaker.model,
            "usage": {
                "prompt_tokens": end.usage.prompt_tokens,
                "total_tokens": end.usage.prompt_tokens,
            },
            "cogrid": ran,
        }
        return encode(answer)


def usage_of(usage: Usage) -> dict[str, int]:
    """Tokens as OpenAI counts them."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _reason(end: End, called: bool) -> str:
    if called and end.finish_reason in ("", "stop"):
        return "tool_calls"
    return end.finish_reason or "stop"


def _logprobs(given: Any, chat: bool) -> Any:
    """Ollama's list of tokens is what OpenAI has under ``content``."""
    return {"content": given} if chat and isinstance(given, list) else given


def _packed(vector: tuple[float, ...]) -> str:
    """32-bit little-endian floats in base64."""
    floats = array("f", vector)
    if byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()
