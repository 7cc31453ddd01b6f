"""Keeps the head and the tail of an output that may have no end."""

from __future__ import annotations

from collections.abc import Callable

_LONGEST_LINE = 64 * 1024
"""Bytes of a line that are passed on at once; a longer one comes in pieces."""


class Kept:
    """What one stream printed: all of it up to ``limit_bytes``, else its head and its tail with a
    note of how much is missing between them."""

    def __init__(self, limit_bytes: int, on_line: Callable[[str], None] | None = None) -> None:
        self._half = max(1, limit_bytes // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._line = bytearray()
        self._on_line = on_line

    def add(self, data: bytes) -> None:
        """More of it, in any pieces."""
        if self._on_line is not None:
            self._tell(data, self._on_line)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._half
        if over > self._half:  # not at every piece: moving the tail costs its length
            self._drop(over)

    def end(self) -> None:
        """Nothing more comes: a last line without its newline is passed on."""
        if self._on_line is not None and self._line:
            self._pass(self._on_line)
        self._drop(len(self._tail) - self._half)

    @property
    def cut(self) -> bool:
        """Whether something is missing."""
        return self._left_out > 0

    @property
    def data(self) -> bytes:
        """What is kept; call ``end`` before."""
        if not self.cut:
            return bytes(self._head + self._tail)
        note = f"\n[... {self._left_out:,} bytes left out ...]\n".encode()
        return bytes(self._head + note + self._tail)

    def _drop(self, over: int) -> None:
        if over > 0:
            del self._tail[:over]
            self._left_out += over

    def _tell(self, data: bytes, on_line: Callable[[str], None]) -> None:
        for piece in _lines(data):
            self._line += piece
            if self._line.endswith(b"\n") or len(self._line) >= _LONGEST_LINE:
                self._pass(on_line)

    def _pass(self, on_line: Callable[[str], None]) -> None:
        text = self._line.decode(errors="replace").removesuffix("\n")
        self._line.clear()
        on_line(text)


def _lines(data: bytes) -> list[bytes]:
    """Cut at newlines only: bytes.splitlines() takes a carriage return for one too."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
