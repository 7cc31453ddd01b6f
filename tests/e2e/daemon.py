"""One process of cogrid, with its log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.wait import until_async

TAIL_LINES = 25
OF_THE_TEST = "GET /workers 200"
"""What the test itself asks the coordinator, many times."""
STOP_S = 15.0


class Daemon:
    """``cogrid <words>`` as a process of its own; ended by its pid, whatever state it is in.
    lives: how often it was started. before: what stands in front of its command line."""

    def __init__(
        self,
        name: str,
        words: tuple[str, ...],
        env: Mapping[str, str],
        directory: Path,
        before: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.words = words
        self.before = before
        self.env = dict(env)
        self.file = directory / f"{name}.log"
        self.lives = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, again too; the log goes on in the same file."""
        assert not self.runs, f"{self.name} runs already"
        self.lives += 1
        with self.file.open("ab") as log:
            self._process = subprocess.Popen(
                (*self.before, sys.executable, "-m", "cogrid.cli.main", *self.words),
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def runs(self) -> bool:
        """True until it has ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything it has said, over all its lives."""
        return self.file.read_text(errors="replace") if self.file.exists() else ""

    @property
    def tail(self) -> str:
        """The last lines of its log under its name."""
        state = "runs" if self.runs else f"ended with {self._process and self._process.returncode}"
        lines = [line for line in self.log.splitlines() if OF_THE_TEST not in line]
        return "\n".join((f"--- {self.name} ({state})", *lines[-TAIL_LINES:]))

    def lines(self, *parts: str) -> list[str]:
        """Lines of its log that hold each of these."""
        return [line for line in self.log.splitlines() if all(part in line for part in parts)]

    async def says(self, *parts: str, within_s: float = 15.0) -> str:
        """The first line with each of these, as soon as there is one."""

        def said() -> str:
            found = self.lines(*parts)
            assert found or self.runs, f"it ended before it said {parts}\n{self.tail}"
            return found[0] if found else ""

        return await until_async(said, within_s, f"{self.name} to say {parts}")

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9, and waits until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_S)

    async def stop(self, within_s: float = STOP_S) -> int:
        """SIGTERM; returns its exit code."""
        process = self._process
        assert process is not None
        process.terminate()
        return await self.over(within_s)

    async def over(self, within_s: float = STOP_S) -> int:
        """Its exit code, when it has ended by itself."""
        process = self._process
        assert process is not None
        await until_async(lambda: process.poll() is not None, within_s, f"{self.name} to end")
        return int(process.returncode)

    def end(self) -> None:
        """Gone, whatever state it is in."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait(STOP_S)

    @property
    def open_files(self) -> int:
        """How many files and sockets it holds open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def threads(self) -> int:
        """How many threads it runs."""
        return len(os.listdir(f"/proc/{self.pid}/task"))
