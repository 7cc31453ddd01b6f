"""The end of what a program says on a pipe, however much that is."""

from __future__ import annotations

import threading
from typing import IO

KEPT_BYTES = 64 * 1024


class Tail:
    """Reads to the end in a thread of its own, so that the program is never held up. The thread
    ends with the last process that holds the pipe, which may outlive the program."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def kept(self) -> bytes:
        """The last KEPT_BYTES of what has come so far."""
        return self._kept

    def wait(self, limit_s: float) -> None:
        """For what is still in the pipe."""
        self._thread.join(limit_s)

    def _read(self) -> None:
        with self._stream:
            while said := self._stream.read(KEPT_BYTES):
                self._kept = (self._kept + said)[-KEPT_BYTES:]
