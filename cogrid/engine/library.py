"""Engines that can be told to get a model, or to throw one away."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cogrid.engine.api import Engine, EngineError, Fault


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a pull stands. status: the engine's own word for what it does. digest: of the part that
    it works on. completed_bytes, total_bytes: of all parts known so far; 0 where it does not say.
    """

    status: str
    digest: str = ""
    completed_bytes: int = 0
    total_bytes: int = 0


@runtime_checkable
class Library(Protocol):
    """What such an engine has beside everything of an ``Engine``."""

    def pull(self, model: str) -> AsyncGenerator[Progress, None]:
        """Gets the model; ends when it is there, EngineError where that failed. Waits for as long
        as the engine is silent: the caller has the limits. Leaving it early closes the engine's
        connection, and the engine keeps what it has got for the next try."""

    async def remove(self, model: str) -> None:
        """Throws the model away. MISSING where it is not there."""


def library(engine: Engine) -> Library:
    """The engine as one, or REFUSED for those that have only what they were started with."""
    if isinstance(engine, Library):
        return engine
    raise EngineError(
        Fault.REFUSED,
        f"{engine.kind} at {engine.url} cannot be told which models it has",
        "start it with the model, or use Ollama",
    )
