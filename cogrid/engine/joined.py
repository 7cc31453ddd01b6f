"""The pieces of an answer that arrived together, as few deltas as their order allows."""

from __future__ import annotations

from typing import Any

from cogrid.model.chat import Delta, ToolCall


class Joined:
    """Collects pieces; neighbours that are both text, or both thinking, become one Delta.

    A fast engine sends hundreds of tokens in one read, and each Delta costs a write further on.
    """

    def __init__(self) -> None:
        self._deltas: list[Delta] = []
        self._content: list[str] = []
        self._thinking: list[str] = []

    def say(self, thinking: str | None, content: str | None, logprobs: Any = None) -> None:
        """A piece of reasoning, of the answer's text, or both. Log probabilities belong to their
        piece alone, so that it is joined with none."""
        if logprobs:
            self._close()
            self._deltas.append(Delta(content or "", thinking or "", logprobs=logprobs))
            return
        if thinking:
            if self._content:
                self._close()
            self._thinking.append(thinking)
        if content:
            if self._thinking:
                self._close()
            self._content.append(content)

    def calls(self, calls: tuple[ToolCall, ...]) -> None:
        """Tool calls, or pieces of them."""
        self._close()
        self._deltas.append(Delta(tool_calls=calls))

    def take(self) -> list[Delta]:
        """Everything collected; the next piece begins anew."""
        self._close()
        deltas, self._deltas = self._deltas, []
        return deltas

    def _close(self) -> None:
        if self._content:
            self._deltas.append(Delta(content="".join(self._content)))
            self._content = []
        if self._thinking:
            self._deltas.append(Delta(thinking="".join(self._thinking)))
            self._thinking = []
