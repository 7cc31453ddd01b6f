"""The files of the embedded server, in its state directory, and what it is configured to."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from cogrid.errors import UsageError

DEFAULT_PORT = 6379
SOCKET_PATH_MAX_BYTES = 103
"""What a unix socket's address can hold: 107 on Linux, 103 on macOS."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens for other machines."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """``host``, ``host:port`` or ``[v6]:port``; 6379 where no port is given."""
        host, colon, port = text.rpartition(":") if _has_port(text) else (text, "", "")
        if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise UsageError(f"'{text}' has no valid port", "write HOST:PORT, port 1 to 65535")
        host = host.removeprefix("[").removesuffix("]")
        if not host:
            raise UsageError(f"'{text}' names no address", "0.0.0.0 means every one of this host")
        return cls(host, int(port) if colon else DEFAULT_PORT)


def _has_port(text: str) -> bool:
    """A bare IPv6 address has several colons and no port."""
    return text.count(":") == 1 or "]:" in text


@dataclass(frozen=True, slots=True)
class Places:
    """The files in ``<state directory>/valkey``, all readable by the owner only."""

    root: Path

    @property
    def socket(self) -> Path:
        return self.root / "sock"

    @property
    def config(self) -> Path:
        return self.root / "valkey.conf"

    @property
    def log(self) -> Path:
        return self.root / "valkey.log"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def password(self) -> Path:
        return self.root / "password"

    def create(self) -> None:
        """Makes the directory; refuses one whose socket would have too long an address."""
        length = len(os.fsencode(self.socket))
        if length > SOCKET_PATH_MAX_BYTES:
            raise UsageError(
                f"the state directory's path is too long for a unix socket: {self.socket} has "
                f"{length} bytes of {SOCKET_PATH_MAX_BYTES}",
                "set XDG_STATE_HOME to a shorter path",
            )
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)


def password_of(places: Places, given: str | None) -> str:
    """The given password, else the kept one, else a new one that is kept (256 random bits)."""
    if given:
        return given
    with contextlib.suppress(FileNotFoundError):
        if kept := places.password.read_text().strip():
            return kept
    made = secrets.token_urlsafe(32)
    write_private(places.password, made + "\n")
    return made


def config_text(places: Places, address: Address | None, password: str) -> str:
    """The server's configuration, a file because a command line would show the password.

    Everything is kept in the append-only file, synced every second: a crash loses one second at
    most, and no snapshot is needed beside it. noeviction: a full server must refuse new work, not
    drop a task that is open.

    An answer that is kept takes 2 kB instead of 6: its hash stays in one piece although it says in
    a sentence why it went where it went, and its log sets 1 kB aside for text instead of 4.
    """
    settings = {
        "dir": str(places.root),
        "unixsocket": str(places.socket),
        "unixsocketperm": "700",
        "port": str(address.port if address else 0),
        **({"bind": address.host} if address else {}),
        **({"requirepass": password} if password else {}),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "hash-max-listpack-value": "1024",
        "stream-node-max-bytes": "1024",
        "daemonize": "no",
        "logfile": str(places.log),
    }
    return "".join(f"{name} {_quoted(value)}\n" for name, value in settings.items())


def read_config(places: Places) -> dict[str, str]:
    """The settings of the file that ``config_text`` made."""
    lines = (line.partition(" ") for line in places.config.read_text().splitlines())
    return {name: _unquoted(value) for name, _, value in lines}


def socket_url(places: Places, password: str) -> str:
    """The URL of its unix socket."""
    secret = f":{quote(password, safe='')}@" if password else ""
    return f"unix://{secret}{quote(str(places.socket))}"


def write_private(path: Path, text: str) -> None:
    """Replaces the file at once, readable by the owner from its first moment on."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    new.replace(path)


def _quoted(value: str) -> str:
    """A value as the server's configuration wants it: spaces and any other byte survive."""
    plain = {*range(0x20, 0x7F)} - {ord('"'), ord("\\")}
    return '"' + "".join(chr(b) if b in plain else f"\\x{b:02x}" for b in os.fsencode(value)) + '"'


def _unquoted(value: str) -> str:
    return os.fsdecode(value[1:-1].encode("ascii").decode("unicode_escape").encode("latin-1"))
