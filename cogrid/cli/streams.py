"""The standard streams, also where they are closed, full, or nobody reads them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any


def mend() -> None:
    """Make up for streams that were closed at the start. Their numbers are taken, so that no
    connection gets one; what is written to standard output fails, so that a lost answer is no
    success; what is written to standard error is lost."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def give_up(stream: Any) -> None:
    """Nobody can read this stream: what is still to be written is dropped, also at the end."""
    with contextlib.suppress(OSError, ValueError):  # it has no number: there is no end to fear
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Closed(io.TextIOBase):
    """Standard output that is closed."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")

    def flush(self) -> None:
        """There is never anything to flush."""
