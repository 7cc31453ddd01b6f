"""Runs a command on a terminal of any width, as an operator sees it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def on_terminal(*words: str, columns: int = 80, typed: str = "", **env: str) -> tuple[int, str]:
    """``cogrid WORDS`` on a pseudo-terminal: its exit code and everything it showed. typed: what is
    typed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "cogrid.cli.main", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, "TERM": "xterm", **env},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    with contextlib.suppress(OSError):  # Linux says EIO where the other side is gone
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    return process.wait(timeout=30), shown.decode("utf-8", "replace").replace("\r\n", "\n")
