"""Standard output of this process as a terminal, a pipe or anything else, for many commands one
after the other; as processes they would take long."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator

import pytest

STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""What rich writes for colours and weights."""


class _Stream(io.TextIOWrapper):
    tty = False

    def isatty(self) -> bool:
        return self.tty


@contextlib.contextmanager
def written(
    patch: pytest.MonkeyPatch, columns: int = 0, encoding: str = "utf-8", **env: str
) -> Iterator[Callable[[], str]]:
    """What was written so far. columns: of a terminal; 0: it is none."""
    buffer = io.BytesIO()
    stream = _Stream(buffer, encoding=encoding)
    stream.tty = columns > 0
    with patch.context() as changed:
        changed.setattr(sys, "stdout", stream)
        for name in ("NO_COLOR", "FORCE_COLOR"):
            changed.delenv(name, raising=False)
        for name, value in {"COLUMNS": str(columns or 80), "TERM": "xterm", **env}.items():
            changed.setenv(name, value)
        yield lambda: buffer.getvalue().decode(encoding)
        stream.flush()
        stream.detach()
