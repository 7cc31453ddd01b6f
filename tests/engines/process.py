"""An engine that runs: a process in a group of its own, with its URL and its log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.wait import until

START_S = 60.0
STOP_S = 15.0


class EngineProcess:
    """Ended with its whole group: some servers leave the process that computes behind."""

    def __init__(
        self, url: str, command: tuple[str, ...], env: Mapping[str, str], log: Path, ready: str
    ) -> None:
        """ready: the path that is answered with 200 once the engine works."""
        self.url = url
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            until(lambda: self._answers(ready), START_S, f"{url} to answer")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_S)

    def _answers(self, path: str) -> bool:
        said = self.log.read_text(errors="replace")[-1000:]
        assert self._process.poll() is None, f"the engine ended at once:\n{said}"
        try:
            return httpx.get(self.url + path, timeout=5).status_code == 200
        except httpx.TransportError:
            return False
