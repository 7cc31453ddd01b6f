"""The Valkey server that ``cogrid up`` brings with it, where no other one is configured.

One server for one state directory, owned by one process: whoever holds the lock on it. Another
process finds the server running and uses it, but leaves it alone at its end. A server whose owner
is gone is stopped cleanly and started again by the next one; its data is in the append-only file.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

from cogrid.errors import UsageError
from cogrid.store.embedded_files import (
    Address,
    Places,
    config_text,
    password_of,
    read_config,
    socket_url,
    write_private,
)
from cogrid.store.embedded_process import (
    STOP_S,
    await_answer,
    binary_path,
    end_leftover,
    launch,
    lock_or_answer,
)


class Embedded:
    """A server that runs. Made by ``start``; ``stop`` ends it if this process owns it.

    url: its unix socket, for this machine; holds the password where there is one. password: ""
    where it listens on the socket only.
    """

    def __init__(
        self,
        places: Places,
        address: Address | None,
        password: str,
        process: subprocess.Popen[bytes] | None,
        lock: IO[str] | None,
    ) -> None:
        self._places = places
        self._process = process
        self._lock = lock
        self.address = address
        self.password = password

    @classmethod
    def start(
        cls, state_dir: Path, listen: str | None = None, password: str | None = None
    ) -> Embedded:
        """Starts the server of this state directory, or finds it running, and waits for its PONG.

        listen: also on this address (``0.0.0.0:6379``), then always with a password: the given
        one, else the one in the file ``password``, which is made at first. Call it from a thread
        that lasts as long as the server is to (see tether.py).
        """
        binary = binary_path()
        places = Places(state_dir.absolute() / "valkey")
        places.create()
        address = Address.parse(listen) if listen else None
        lock = lock_or_answer(places)
        if lock is None:
            return cls._join(places)
        try:
            secret = password_of(places, password) if address else ""
            end_leftover(places)
            write_private(places.config, config_text(places, address, secret))
            process = launch(binary, places)
            try:
                await_answer(places, process)
            except BaseException:
                process.kill()
                process.wait()
                raise
        except BaseException:
            lock.close()
            raise
        return cls(places, address, secret, process, lock)

    @classmethod
    def running_in(cls, state_dir: Path) -> Embedded | None:
        """The server that another process runs there, None where there is none."""
        places = Places(state_dir.absolute() / "valkey")
        return cls._join(places) if places.socket.exists() else None

    @classmethod
    def _join(cls, places: Places) -> Embedded:
        """The server as its owner configured it, for a process that only uses it."""
        config = read_config(places)
        port = int(config.get("port", "0"))
        address = Address(config["bind"], port) if port else None
        return cls(places, address, config.get("requirepass", ""), None, None)

    @property
    def url(self) -> str:
        """How this machine reaches it: ``unix://…``."""
        return socket_url(self._places, self.password)

    def network_url(self, host: str) -> str:
        """How another machine reaches it that knows this one as ``host``; it has the password."""
        if self.address is None:
            raise UsageError("the embedded server listens on this machine only", "use --listen")
        name = f"[{host}]" if ":" in host else host
        return f"redis://:{quote(self.password, safe='')}@{name}:{self.address.port}/0"

    @property
    def owned(self) -> bool:
        """True where ``stop`` ends it, False where another process does."""
        return self._lock is not None

    @property
    def running(self) -> bool:
        """False once the server has ended by itself; its log says why."""
        return self._process is None or self._process.poll() is None

    @property
    def log(self) -> Path:
        """The server's own log."""
        return self._places.log

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """Its process where this one owns it, else None."""
        return self._process

    def start_again(self) -> subprocess.Popen[bytes]:
        """Starts a server of ours that has ended by itself, on its data and where it was; does not
        wait for its PONG. Call it from a thread that lasts, too."""
        assert self.owned, "another process looks after it"
        self._process = launch(binary_path(), self._places)
        return self._process

    def stop(self) -> None:
        """Has it write its data and end, waits for that, and gives up the lock. Twice is once."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
