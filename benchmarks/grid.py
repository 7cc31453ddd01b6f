"""A whole grid for a benchmark: server, coordinator, workers, reaper, each a process of its own.

The server is the embedded one, as ``cogrid up`` starts it: append-only file, synced every second.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.process import Process, cpu_s, free_port, module
from cogrid.store.address import Address, parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.client import Store
from cogrid.store.embedded import Embedded
from cogrid.store.reading import Reading, certain

PREFIX = "bench:"


class Server:
    """The embedded server in a directory of its own, which goes with it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="cogrid-bench-")
        self.directory = Path(self._directory.name)
        self._embedded = Embedded.start(self.directory)
        self.url = self._embedded.url
        self.address: Address = parse_address(self.url)

    @property
    def env(self) -> dict[str, str]:
        """What tells a cogrid process where it is."""
        return {"COGRID_REDIS_URL": self.url, "COGRID_PREFIX": PREFIX}

    def store(self) -> Store:
        """A connection of the sync kind."""
        return Store.connect(self.address, PREFIX)

    def async_store(self) -> AsyncStore:
        """A connection of the async kind, for a running loop."""
        return AsyncStore(self.address, PREFIX)

    def pid(self) -> int:
        """The server's process."""
        return int(self.info("server")["process_id"])

    def info(self, section: str) -> dict[str, str]:
        """One section of INFO."""
        with contextlib.closing(self.store()) as store:
            return store.read(_info(section))

    def stop(self) -> None:
        """Ends it and removes its data."""
        self._embedded.stop()
        self._directory.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _info(section: str) -> Reading[dict[str, str]]:
    (reply,) = yield [("INFO", section)]
    lines = certain(reply).decode().splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


class Grid:
    """A server with what works on it. Started piece by piece; everything ends with the grid."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self.server = self._stack.enter_context(Server())
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
