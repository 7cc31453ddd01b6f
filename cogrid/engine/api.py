"""What an engine is to the rest of cogrid: models it lists, answers it streams, how it fails.

Nothing here speaks HTTP, so that importing it is cheap; ``find`` and ``open_engine``
(``engine/find.py``) bring the code that does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from cogrid.errors import CogridError
from cogrid.model.chat import Delta, Request, Usage


@dataclass(frozen=True, slots=True)
class Listed:
    """One model that an engine has.

    name: its normal name. supports: of chat, embed, vision, tools, thinking; a guess from the
    model's name where the engine does not tell. loaded: in memory now. vram_bytes: the part of it
    on a GPU. context: tokens it was loaded with, else those it was made for. 0: not told.
    """

    name: str
    digest: str = ""
    size_bytes: int = 0
    supports: tuple[str, ...] = ("chat",)
    loaded: bool = False
    vram_bytes: int = 0
    context: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The proper end of a stream. finish_reason: ``stop``, ``length`` or ``tool_calls``."""

    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)

    def timed(self, total_s: float) -> Done:
        """The same with the seconds from request to end, where the engine did not tell them."""
        if self.usage.total_s:
            return self
        return replace(self, usage=replace(self.usage, total_s=total_s))


class Fault(StrEnum):
    """How an engine failed."""

    UNREACHABLE = "unreachable"
    """Refused, reset before the answer began, no such host, no answer to a question in time."""
    CUT = "cut"
    """The answer broke off: it ended without its terminator."""
    SERVER = "server"
    """5xx, an error inside a stream, bad JSON, a wrong key: the engine's own trouble."""
    BUSY = "busy"
    """503 or 429: its queue is full, or it still loads."""
    MISSING = "missing"
    """The model is not there."""
    REFUSED = "refused"
    """The request is at fault, so that another engine with this model would refuse it too."""
    SILENT = "silent"
    """No token for too long; the worker finds that out, no engine raises it."""


class EngineError(CogridError):
    """An engine did not do what was asked. status: of its HTTP answer, 0 if there was none."""

    def __init__(self, fault: Fault, message: str, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint)
        self.fault = fault
        self.status = status

    @property
    def retryable(self) -> bool:
        """True where another engine may well succeed with the same request."""
        return self.fault is not Fault.REFUSED


class Engine(Protocol):
    """A server that runs models, or the demonstration without one.

    kind: ``ollama``, ``openai`` or ``demo``. url: where it is, without a slash at the end.
    """

    kind: str
    url: str

    async def version(self) -> str:
        """What it says its version is; "" where it has no way to say."""

    async def listed(self) -> tuple[Listed, ...]:
        """Its models. Loads none, and gives up after ANSWER_S."""

    async def parallel(self) -> int:
        """How many requests it really works on at once; others would only wait inside it."""

    async def gpu(self) -> bool:
        """Whether it computes on a GPU, as far as it or this machine can tell."""

    async def probe(self, model: Listed) -> None:
        """Asks the model for one token, an embedding model for one vector, with the engine's own
        settings, so that a loaded model is not loaded anew. Returns if it could. Loading takes its
        time and there is no limit here: the caller has one."""

    def stream(self, request: Request) -> AsyncGenerator[Delta | Done, None]:
        """The answer: deltas, then exactly one Done; anything else is an EngineError.

        Waits for as long as the engine is silent: the caller has the limits. Cancelling the task
        that waits, or ``aclose`` of the generator, closes the engine's connection at once; a loop
        that may be left early belongs in ``contextlib.aclosing``.
        """

    async def aclose(self) -> None:
        """Closes what it keeps open."""


ANSWER_S = 5.0
"""Seconds within which an engine must answer a question that needs no model."""

CONNECT_S = 5.0
"""Seconds within which a connection to an engine must stand."""
