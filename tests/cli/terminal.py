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
from collections.abc import Sequence

CONTROL_C = "\x03"
LINES = 40


def on_terminal(
    *words: str,
    columns: int = 80,
    typed: str = "",
    cues: Sequence[tuple[str, str]] = (),
    before: Sequence[str] = (),
    **env: str,
) -> tuple[int, str]:
    """``cogrid WORDS`` on a pseudo-terminal: its exit code and everything it showed. typed: what is
    typed there at once. cues: what is typed as soon as something is shown, one after the other.
    before: what stands in front of its command line."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    kept = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        # Control-C is a signal only to those whose terminal it is.
        ["setsid", "--ctty", *before, sys.executable, "-m", "cogrid.cli.main", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, "TERM": "xterm", **env},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, typed.encode())
    shown, left, heard = b"", list(cues), 0
    with contextlib.suppress(OSError):  # Linux says EIO where the other side is gone
        while piece := os.read(ours, 65_536):
            shown += piece
            while left and (at := shown.find(left[0][0].encode(), heard)) >= 0:
                heard = at + len(left[0][0].encode())
                os.write(ours, left.pop(0)[1].encode())
    os.close(ours)
    return process.wait(timeout=30), shown.decode("utf-8", "replace").replace("\r\n", "\n")
