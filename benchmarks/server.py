"""The server of a benchmark: the embedded one, as ``cogrid up`` starts it, or another with the same
settings: append-only file, synced every second."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Self

from benchmarks.process import Process
from cogrid.store.address import Address, parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.client import Store
from cogrid.store.embedded import Embedded
from cogrid.store.reading import Reading, certain
from cogrid.store.refusal import StoreError

PREFIX = "bench:"


SETTINGS = {
    "port": "0",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "hash-max-listpack-value": "1024",
    "stream-node-max-bytes": "1024",
}
"""Of a server that is not the embedded one: what that one has."""
START_S = 30.0


class Server:
    """A server in a directory of its own, which goes with it.

    binary: another than the embedded one, such as ``/usr/bin/redis-server``.
    """

    def __init__(self, binary: str = "") -> None:
        self._stack = contextlib.ExitStack()
        place = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="cogrid-bench-"))
        self.directory = Path(place)
        if binary:
            self.url = f"unix://{self.directory}/sock"
            self._stack.enter_context(_process(binary, self.directory))
        else:
            self.url = self._stack.enter_context(Embedded.start(self.directory)).url
        self.address: Address = parse_address(self.url)
        self._await_answer()

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

    @property
    def name(self) -> str:
        """What it is: ``redis 7.0.15``."""
        said = self.info("server")
        valkey = said.get("valkey_version")
        return f"valkey {valkey}" if valkey else f"redis {said['redis_version']}"

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.info("server")
                return
            except StoreError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()


def _process(binary: str, directory: Path) -> Process:
    settings = {**SETTINGS, "unixsocket": f"{directory}/sock", "dir": str(directory)}
    words = (word for name, value in settings.items() for word in (f"--{name}", value))
    return Process("server", (binary, *words), directory)


def _info(section: str) -> Reading[dict[str, str]]:
    (reply,) = yield [("INFO", section)]
    lines = certain(reply).decode().splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}
