"""What is asked of a model and what comes back, apart from any dialect.

A request keeps the client's own JSON (``payload``) beside its dialect, so that fields cogrid does
not know travel to the engine unchanged; an engine of another dialect gets it translated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from cogrid.model.task import Kind, State


class Dialect(StrEnum):
    """Whose JSON a payload is."""

    OPENAI = "openai"
    OLLAMA = "ollama"


@dataclass(frozen=True, slots=True)
class Request:
    """The body of a task (``task:<id>:body``, JSON).

    payload: the client's request as it came, with ``model`` replaced by its normal name and
    ``stream`` dropped (the worker always streams; the coordinator answers as was asked).
    For Kind.CHAT: /v1/chat/completions or /api/chat; GENERATE: /v1/completions or /api/generate;
    EMBED: /v1/embeddings or /api/embed.
    """

    kind: Kind
    dialect: Dialect
    model: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A piece of a tool call: ``index`` tells the calls of one answer apart; ``arguments`` is JSON
    text, or a piece of it that is appended to what came before under the same index."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """One piece of an answer (JSON in an out entry's ``data``; empty fields are left out).

    logprobs: the engine's own objects, handed on as they are. embeddings: the whole result of an
    embed task, one vector of floats an input.
    """

    content: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: Any = None
    embeddings: tuple[tuple[float, ...], ...] = ()

    def __add__(self, other: Delta) -> Delta:
        """Both pieces as one; only for two pieces that say the same kind of thing."""
        return Delta(
            self.content + other.content,
            self.thinking + other.thinking,
            self.tool_calls + other.tool_calls,
            self.logprobs if other.logprobs is None else other.logprobs,
            self.embeddings + other.embeddings,
        )

    @property
    def kinds(self) -> tuple[bool, bool, bool, bool]:
        """Which fields it fills; two neighbours of equal kinds may be joined without changing
        the order in which a client sees thinking, text and calls."""
        return (
            bool(self.content),
            bool(self.thinking),
            bool(self.tool_calls),
            self.logprobs is not None,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost: tokens and seconds, as the engine counted them (0 where it did not say)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    load_s: float = 0.0
    prompt_s: float = 0.0
    eval_s: float = 0.0
    total_s: float = 0.0


class Code(StrEnum):
    """Why a task ended without an answer; the coordinator maps each to a status."""

    NO_HOME = "no_home"
    BROKEN_STREAM = "broken_stream"
    RECOVERIES_SPENT = "recoveries_spent"
    QUEUE_TIMEOUT = "queue_timeout"
    TIMEOUT = "timeout"
    ENGINE_ERROR = "engine_error"
    ENGINE_REFUSED = "engine_refused"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"
    WORKER_GONE = "worker_gone"


@dataclass(frozen=True, slots=True)
class Claimed:
    """Out entry: a run begins."""

    worker: str
    queue: str


@dataclass(frozen=True, slots=True)
class Reset:
    """Out entry: the run is over without an end; its text is void, another run will come."""

    worker: str
    reason: str
    queue: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Out entry: the waiting task went from one worker's queue to another."""

    worker: str
    reason: str
    queue: str


@dataclass(frozen=True, slots=True)
class End:
    """Out entry: the only proper end of every task, whoever ended it.

    finish_reason: stop, length, tool_calls, or "" where it failed. message, code: the failure.
    """

    state: State
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    message: str = ""
    code: str = ""
    worker: str = ""


Item = Claimed | Delta | Reset | Moved | End


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of ``task:<id>:out``. id: ``<run>-<n>``, also the SSE id of task events."""

    id: str
    item: Item

    @property
    def run(self) -> int:
        """The run that wrote it."""
        return int(self.id.partition("-")[0])


_json = msgspec.json.Encoder()
_request = msgspec.json.Decoder(Request)
_delta = msgspec.json.Decoder(Delta)
_usage = msgspec.json.Decoder(Usage)


def encode_request(request: Request) -> bytes:
    """The body as JSON."""
    return _json.encode(request)


def decode_request(body: bytes) -> Request:
    """The body back; msgspec.ValidationError on anything else."""
    return _request.decode(body)


def encode_delta(delta: Delta) -> bytes:
    """A delta as JSON without its empty fields."""
    said: dict[str, object] = {}
    if delta.content:
        said["content"] = delta.content
    if delta.thinking:
        said["thinking"] = delta.thinking
    if delta.tool_calls:
        said["tool_calls"] = delta.tool_calls
    if delta.logprobs is not None:
        said["logprobs"] = delta.logprobs
    if delta.embeddings:
        said["embeddings"] = delta.embeddings
    return _json.encode(said)


def decode_delta(data: bytes) -> Delta:
    """A delta back."""
    return _delta.decode(data)


def encode_usage(usage: Usage) -> bytes:
    """Usage as JSON."""
    return _json.encode(usage)


def decode_usage(data: bytes) -> Usage:
    """Usage back; nothing gives all zeros."""
    return _usage.decode(data) if data else Usage()
