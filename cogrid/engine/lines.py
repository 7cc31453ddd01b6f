"""Cuts what the network brings into whole lines, wherever the network has cut it."""

from __future__ import annotations

LINE_MAX_BYTES = 16 * 1024 * 1024
"""A line longer than this is no answer. The longest that clients meet, a tool call with a file in
its arguments, is some hundred kB."""


class LineTooLongError(ValueError):
    """The engine sent LINE_MAX_BYTES without a line's end."""


class Lines:
    """Keeps what is behind the last line's end until the rest of that line has come.

    It works on bytes, so a cut inside a multi-byte character does no harm.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._kept_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """All whole lines that are there now, with their ends; b"" if there is none."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._keep(data)
            return b""
        whole = b"".join((*self._parts, data[:cut]))
        self._parts, self._kept_bytes = [], 0
        if cut < len(data):
            self._keep(data[cut:])
        return whole

    def rest(self) -> bytes:
        """The last line, where its end is missing."""
        return b"".join(self._parts)

    def _keep(self, data: bytes) -> None:
        self._kept_bytes += len(data)
        if self._kept_bytes > LINE_MAX_BYTES:
            raise LineTooLongError(f"{LINE_MAX_BYTES} bytes without a line's end")
        self._parts.append(data)
