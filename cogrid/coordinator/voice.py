"""What the two dialects have in common when they answer: one id, one time, one model's name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import msgspec

from cogrid.coordinator.gathered import Gathered
from cogrid.model.chat import Delta, End
from cogrid.model.task import Kind

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose answer it is. model: as the client wrote it. created_s: seconds since 1970."""

    task: str
    model: str
    kind: Kind
    created_s: float
    include_usage: bool = False
    base64: bool = False
    single: bool = False


class Voice(ABC):
    """An answer in one dialect, as bytes. Of one stream only: it knows what it has said."""

    content_type: bytes

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    @abstractmethod
    def piece(self, delta: Delta) -> bytes:
        """A piece of the answer."""

    @abstractmethod
    def status(self, description: str, done: bool, hidden: bool) -> bytes:
        """Open WebUI's status event inside an empty piece."""

    @abstractmethod
    def alive(self) -> bytes:
        """Something that says nothing, so that nobody takes the connection for dead."""

    @abstractmethod
    def end(self, end: End, ran: dict[str, Any]) -> bytes:
        """The proper end. ran: the ``cogrid`` object."""

    @abstractmethod
    def whole(self, gathered: Gathered, end: End, ran: dict[str, Any]) -> bytes:
        """The answer in one piece, for a client that does not stream."""


def event(description: str, done: bool, hidden: bool) -> dict[str, Any]:
    """Open WebUI's status event (seen with its version 0.12)."""
    data: dict[str, Any] = {"description": description, "done": done}
    if hidden:
        data["hidden"] = True
    return {"type": "status", "data": data}
