"""The pieces of an answer put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cogrid.model.chat import Delta, ToolCall


class Gathered:
    """What one run has said so far; another run has one of its own."""

    def __init__(self) -> None:
        self._contents: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, ToolCall] = {}
        self.logprobs: Any = None
        self.embeddings: tuple[tuple[float, ...], ...] = ()

    @property
    def content(self) -> str:
        """The text."""
        return "".join(self._contents)

    @property
    def thinking(self) -> str:
        """The reasoning before it."""
        return "".join(self._thoughts)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, whole, in the order of their indices."""
        return tuple(self._calls[index] for index in sorted(self._calls))

    def add(self, delta: Delta) -> None:
        """One more piece."""
        if delta.content:
            self._contents.append(delta.content)
        if delta.thinking:
            self._thoughts.append(delta.thinking)
        if delta.tool_calls:
            self.add_calls(delta.tool_calls)
        if delta.logprobs is not None:
            self.logprobs = joined(self.logprobs, delta.logprobs)
        self.embeddings += delta.embeddings

    def add_calls(self, pieces: Iterable[ToolCall]) -> None:
        """Pieces of calls; the arguments of one index are one text."""
        for piece in pieces:
            had = self._calls.get(piece.index, ToolCall(piece.index))
            self._calls[piece.index] = ToolCall(
                piece.index,
                had.id or piece.id,
                had.name or piece.name,
                had.arguments + piece.arguments,
            )


def joined(had: Any, more: Any) -> Any:
    """Two engines' objects of log probabilities as one: lists are appended, also inside objects."""
    if had is None:
        return more
    if isinstance(had, list) and isinstance(more, list):
        return had + more
    if isinstance(had, dict) and isinstance(more, dict):
        return {**had, **{name: joined(had.get(name), value) for name, value in more.items()}}
    return had if more is None else more
