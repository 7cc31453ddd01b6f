"""What the mock engine says, as bytes that are made once and sent many times.

A token is ``^<number> ``: the mark counts tokens however they are cut or joined on the way, and the
numbers keep a proxy that looks for a model caught in a loop from finding one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

MARK = b"^"
MODELS = ("mock", "mock-20ms")
"""The delay before each token is in the model's name; ``mock`` has none."""

TOKENS = 16
_DELAY = re.compile(rb'"model"\s*:\s*"[^"]*-(\d+)ms')
_LIMIT = re.compile(rb'"(?:max_tokens|num_predict)"\s*:\s*(\d+)')
_STREAM = re.compile(rb'"stream"\s*:\s*(true|false)')
_CREATED = 1_780_800_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request decides its answer: tokens, delay before each, streamed or not."""

    tokens: int
    delay_ms: int
    streamed: bool


def asked(body: bytes, streams: bool) -> Asked:
    """Read out of the JSON without parsing it. streams: whether the dialect does unless told."""
    limit, delay, stream = _LIMIT.search(body), _DELAY.search(body), _STREAM.search(body)
    return Asked(
        int(limit[1]) if limit else TOKENS,
        int(delay[1]) if delay else 0,
        stream[1] == b"true" if stream else streams,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """pieces: one a token, each as it goes over the wire; ``end`` follows the last. whole: all of
    it, for an answer without a delay."""

    head: bytes
    pieces: tuple[bytes, ...]
    end: bytes
    whole: bytes


@cache
def openai_answer(asked: Asked) -> Answer:
    """``POST /v1/chat/completions``."""
    usage = {
        "prompt_tokens": 8,
        "completion_tokens": asked.tokens,
        "total_tokens": asked.tokens + 8,
    }
    if not asked.streamed:
        message = {"role": "assistant", "content": "".join(words(asked.tokens))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = _openai("chat.completion", [choice]) | {"usage": usage}
        return _plain(body)
    pieces = tuple(
        _event(
            _openai_chunk({"role": "assistant", "content": word} if n == 0 else {"content": word})
        )
        for n, word in enumerate(words(asked.tokens))
    )
    last = _event(_openai_chunk({}, "stop"))
    counted = _event(_openai("chat.completion.chunk", []) | {"usage": usage})
    end = last + counted + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return _answer(_head("text/event-stream"), pieces, end)


@cache
def ollama_answer(asked: Asked) -> Answer:
    """``POST /api/chat``."""
    end = _ollama("", True) | {
        "done_reason": "stop",
        "total_duration": 1,
        "load_duration": 0,
        "prompt_eval_count": 8,
        "prompt_eval_duration": 1,
        "eval_count": asked.tokens,
        "eval_duration": 1,
    }
    if not asked.streamed:
        return _plain(end | _ollama("".join(words(asked.tokens)), True))
    pieces = tuple(_line(_ollama(word, False)) for word in words(asked.tokens))
    return _answer(_head("application/x-ndjson"), pieces, _line(end) + b"0\r\n\r\n")


def listing(path: bytes, dialect: str) -> bytes | None:
    """The answer to a GET that an engine of this dialect knows, else None."""
    answers: dict[tuple[str, bytes], object] = {
        ("openai", b"/v1/models"): {
            "object": "list",
            "data": [{"id": name, "object": "model", "owned_by": "vllm"} for name in MODELS],
        },
        ("openai", b"/version"): {"version": "0.0.0"},
        ("ollama", b"/api/version"): {"version": "0.9.3"},
        ("ollama", b"/api/tags"): {"models": [_tag(name) for name in MODELS]},
        ("ollama", b"/api/ps"): {"models": [_tag(name) for name in MODELS]},
    }
    body = answers.get((dialect, path))
    return _plain(body).whole if body is not None else None


def words(tokens: int) -> list[str]:
    """The text of an answer, a token each."""
    return [f"{MARK.decode()}{n} " for n in range(tokens)]


def _openai(kind: str, choices: list[object]) -> dict[str, object]:
    return {
        "id": "chatcmpl-mock",
        "object": kind,
        "created": _CREATED,
        "model": MODELS[0],
        "choices": choices,
    }


def _openai_chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _openai("chat.completion.chunk", [choice])


def _ollama(content: str, done: bool) -> dict[str, object]:
    return {
        "model": MODELS[0],
        "created_at": "2026-06-07T02:40:00Z",
        "message": {"role": "assistant", "content": content},
        "done": done,
    }


def _tag(name: str) -> dict[str, object]:
    return {
        "name": name,
        "model": name,
        "digest": "0" * 64,
        "size": 1,
        "capabilities": ["completion"],
        "details": {"family": "mock"},
        "size_vram": 0,
        "context_length": 4096,
    }


def _answer(head: bytes, pieces: tuple[bytes, ...], end: bytes) -> Answer:
    return Answer(head, pieces, end, b"".join((head, *pieces, end)))


def _plain(body: object) -> Answer:
    data = json.dumps(body).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return _answer(head % len(data), (), data)


def _head(content_type: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()


def _event(body: object) -> bytes:
    return _chunk(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")


def _line(body: object) -> bytes:
    return _chunk(json.dumps(body, separators=(",", ":")).encode() + b"\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
