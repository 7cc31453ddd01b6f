"""In systemd's place: the socket that a daemon tells its state."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 30.0


@contextmanager
def listening() -> Iterator[socket.socket]:
    """What listens at NOTIFY_SOCKET, which is its ``getsockname()``."""
    with (
        tempfile.TemporaryDirectory() as home,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(str(Path(home) / "notify"))
        listener.settimeout(WAIT_S)
        yield listener


def hear(listener: socket.socket, word: bytes) -> bytes:
    """The next message with this word in it; others before it are passed over."""
    message = b""
    while word not in message:
        message = listener.recv(1000)
    return message
