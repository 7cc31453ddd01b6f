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
    """Passes everything on. received: the first bytes that came."""

    def __init__(self, stream: Stream) -> None:
        self.received = b""
        self.stream = stream
        self._closed = False  # paramiko looks at it while it stops its thread

    def send(self, data: bytes) -> int:
        return self.stream.send(data)

    def recv(self, size: int) -> bytes:
        data = self.stream.recv(size)
        if len(self.received) < _KEPT:
            self.received += data[: _KEPT - len(self.received)]
        return data

    def close(self) -> None:
        self._closed = True
        self.stream.close()

    def settimeout(self, timeout: float | None) -> None:
        self.stream.settimeout(timeout)
