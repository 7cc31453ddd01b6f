"""A socket that remembers how the other side began, for messages that say what went wrong."""

from __future__ import annotations

from typing import Protocol

_KEPT = 8 * 1024
"""Bytes: the greeting and the list of algorithms, which come before anything is encrypted."""


class Stream(Protocol):
    """What paramiko asks of a socket; its own channels have it too."""

    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...
    def settimeout(self, timeout: float | None, /) -> None: ...


class Tap:
    """Passes everything on. received: the first bytes that came. ended: the other side closed."""

    def __init__(self, stream: Stream) -> None:
        self.received = b""
        self.ended = False
        self._stream = stream
        self._closed = False  # paramiko looks at it while it stops its thread

    def send(self, data: bytes) -> int:
        return self._stream.send(data)

    def recv(self, size: int) -> bytes:
        data = self._stream.recv(size)
        self.ended = self.ended or not data
        if len(self.received) < _KEPT:
            self.received += data[: _KEPT - len(self.received)]
        return data

    def close(self) -> None:
        self._closed = True
        self._stream.close()

    def settimeout(self, timeout: float | None) -> None:
        self._stream.settimeout(timeout)
