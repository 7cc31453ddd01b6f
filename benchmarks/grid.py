"""A whole grid for a benchmark: server, coordinator, workers, reaper, each a process of its own."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Self

from benchmarks.process import Process, cpu_s, free_port, module
from benchmarks.server import Server


class Grid:
    """A server with what works on it. Started piece by piece; everything ends with the grid."""

    def __init__(self, server: str = "") -> None:
        self._stack = contextlib.ExitStack()
        self.server = self._stack.enter_context(Server(server))
        self.processes: dict[str, Process] = {}
        self.url = ""

    def coordinator(self) -> Process:
        """Starts it and waits until it answers."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        words = module("cogrid.cli.main", "coordinator", "run", "--listen", f"127.0.0.1:{port}")
        started = self._start("coordinator", words)
        started.await_answer(f"{self.url}/healthz")
        return started

    def worker(self, engine: str, slots: int, name: str = "worker", **env: str) -> Process:
        """Starts one beside this engine."""
        words = module(
            "cogrid.cli.main", "worker", "run", "--id", name, "--engine", engine,
            "--slots", str(slots),
        )  # fmt: skip
        return self._start(name, words, {"XDG_STATE_HOME": str(self.server.directory), **env})

    def reaper(self) -> Process:
        """Starts it as a daemon."""
        return self._start("reaper", module("cogrid.cli.main", "reaper", "--daemon"))

    def mock(self, dialect: str = "openai") -> str:
        """Starts the mock engine; its address."""
        port = free_port()
        words = module("benchmarks.mock_engine", "--port", str(port), "--dialect", dialect)
        listing = "/v1/models" if dialect == "openai" else "/api/tags"
        self._start("mock", words).await_answer(f"http://127.0.0.1:{port}{listing}")
        return f"http://127.0.0.1:{port}"

    def await_ready(self) -> None:
        """Waits until some worker can answer a request."""
        self.processes["coordinator"].await_answer(f"{self.url}/readyz")

    def cpu_s(self) -> dict[str, float]:
        """CPU time used so far, by process."""
        used = {name: process.cpu_s() for name, process in self.processes.items()}
        return {**used, "server": cpu_s(self.server.pid())}

    def _start(
        self, name: str, words: tuple[str, ...], env: dict[str, str] | None = None
    ) -> Process:
        known = {**self.server.env, **(env or {})}
        process = Process(name, words, self.server.directory, known)
        self.processes[name] = self._stack.enter_context(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
