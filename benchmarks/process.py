"""Processes that a benchmark starts: watched until they are ready, ended by their own pid."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

START_S = 60.0
STOP_S = 15.0
POLL_S = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """One process; what it writes goes into ``<name>.log``."""

    def __init__(
        self, name: str, words: Sequence[str], logs: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._log = logs / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_answer(self, url: str, timeout_s: float = START_S) -> None:
        """Waits for a 200 from this URL; RuntimeError with the log's end if none comes."""
        deadline = time.monotonic() + timeout_s
        while not answers(url):
            if not self.runs:
                raise RuntimeError(f"{self.name} ended at its start: {self.last_lines()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{url} does not answer; {self.name} says: {self.last_lines()}")
            time.sleep(POLL_S)

    @property
    def runs(self) -> bool:
        """False once it has ended, whatever the reason."""
        return self._process.poll() is None

    def last_lines(self, most: int = 12) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-most:])

    def cpu_s(self) -> float:
        """CPU time that it has used so far (user and system)."""
        return cpu_s(self.pid)

    def stop(self) -> None:
        """Ends it, by force where it does not end by itself."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def cpu_s(pid: int) -> float:
    """CPU time that a process has used so far (user and system)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a Python module, with this very Python."""
    return (sys.executable, "-m", name, *arguments)


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    """True where a GET gets a 200."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:
        return bool(reply.status == 200)
    return False
