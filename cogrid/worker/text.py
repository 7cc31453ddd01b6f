"""The text of one run: pieces for its log, numbered, kept until its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from cogrid.model.chat import Delta, ToolCall, encode_delta

PIECE_BYTES = 64 * 1024
"""The most that one entry holds; longer text goes as several, cut between characters."""

BATCH_PIECES = 16
"""The most that one call carries, so that no call holds the server for long."""


class Text:
    """Deltas in, pieces out. A server that fell back behind what it had acknowledged gets the rest
    again, so nothing is thrown away before the run is over."""

    __slots__ = ("_new", "_pieces", "_sent", "deltas")

    def __init__(self) -> None:
        self.deltas = 0
        self._new: list[Delta] = []
        self._pieces: list[bytes] = []
        self._sent = 0

    def add(self, delta: Delta) -> None:
        """One more piece of the answer."""
        self.deltas += 1
        self._new.append(delta)

    @property
    def waiting(self) -> bool:
        """True while the server does not have all of it."""
        return bool(self._new) or self._sent < len(self._pieces)

    def batch(self) -> tuple[int, tuple[bytes, ...]]:
        """What goes next: the number of its first piece, and the pieces."""
        if self._new:
            self._pieces.extend(pieces(self._new))
            self._new.clear()
        first = self._sent
        return first + 1, tuple(self._pieces[first : first + BATCH_PIECES])

    def reached(self, n: int) -> None:
        """The server has everything up to piece n and nothing after it."""
        self._sent = min(n, len(self._pieces))


def pieces(deltas: list[Delta]) -> Iterator[bytes]:
    """Deltas as entries: neighbours that say the same kind of thing are joined."""
    for _, group in groupby(deltas, key=_joinable):
        yield from _cut(_joined(list(group)))


def _joinable(delta: Delta) -> object:
    # Each list of logprobs belongs to its own text, and vectors come in one piece.
    alone = delta.logprobs is not None or delta.embeddings
    return id(delta) if alone else delta.kinds


def _joined(group: list[Delta]) -> Delta:
    if len(group) == 1:
        return group[0]
    return Delta(
        content="".join([delta.content for delta in group]),
        thinking="".join([delta.thinking for delta in group]),
        tool_calls=tuple(call for delta in group for call in delta.tool_calls),
    )


def _cut(delta: Delta) -> Iterator[bytes]:
    data = encode_delta(delta)
    halves = _halves(delta) if len(data) > PIECE_BYTES else ()
    if not halves:
        yield data
    for half in halves:
        yield from _cut(half)


def _halves(delta: Delta) -> tuple[Delta, ...]:
    """Two parts that say the same one after the other; none where it cannot be cut."""
    thinking, content, calls = delta.thinking, delta.content, delta.tool_calls
    if thinking and (content or calls):
        return Delta(thinking=thinking), Delta(content, "", calls, delta.logprobs)
    if content and calls:
        return Delta(content, logprobs=delta.logprobs), Delta(tool_calls=calls)
    if len(thinking) > 1:
        middle = len(thinking) // 2
        return Delta(thinking=thinking[:middle]), Delta(thinking=thinking[middle:])
    if len(content) > 1:
        middle = len(content) // 2
        return Delta(content[:middle], logprobs=delta.logprobs), Delta(content[middle:])
    if len(calls) > 1:
        middle = len(calls) // 2
        return Delta(tool_calls=calls[:middle]), Delta(tool_calls=calls[middle:])
    if calls and len(calls[0].arguments) > 1:
        return tuple(Delta(tool_calls=(half,)) for half in _half_call(calls[0]))
    return ()


def _half_call(call: ToolCall) -> tuple[ToolCall, ToolCall]:
    middle = len(call.arguments) // 2
    first = ToolCall(call.index, call.id, call.name, call.arguments[:middle])
    return first, ToolCall(call.index, arguments=call.arguments[middle:])
