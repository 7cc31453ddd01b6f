"""Who a worker is: its name, this process of it, and the lock that proves there is one only."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from cogrid.errors import ConflictError, UsageError
from cogrid.model.names import WorkerId, host_name

MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True)
class Identity:
    """id: the worker's name. instance: random, one a process. lock: random, one a lock file; the
    same lock under another instance means that the older process is gone. host: as it calls
    itself."""

    id: WorkerId
    instance: str
    lock: str
    host: str


class _Kept(msgspec.Struct):
    lock: str = ""
    machine: str = ""
    pid: int = 0


def default_id(host: str) -> WorkerId:
    """The short host name as a worker's name; UsageError where nothing of it can be one."""
    name = host_name(host)
    if not name:
        raise UsageError(f"the host name {host!r} is no name for a worker", "give one with --id")
    return WorkerId(name)


class NameLock:
    """Holds a worker's name on this machine for as long as the process lives.

    The file keeps a random id over restarts; the operating system lets go of the lock however the
    process ends.
    """

    def __init__(self, file: int, lock: str) -> None:
        self._file = file
        self.lock = lock

    @classmethod
    def take(cls, directory: Path, worker: str) -> Self:
        """The name, or ConflictError with the process that has it."""
        path = directory / f"worker-{worker}.lock"
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the lock file {path} cannot be opened: {error.strerror}",
                "set worker.state_dir or XDG_STATE_HOME to a directory that this user may write",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = _read(file).pid
            os.close(file)
            raise ConflictError(
                f"worker {worker} already runs on this machine, as process {pid}",
                "stop that one first, or give this one another name with --id",
            ) from error
        return cls(file, _keep(file))

    def release(self) -> None:
        """Let go of the name; the file and its id stay."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def identity(worker: WorkerId, lock: NameLock) -> Identity:
    """A new instance of that worker."""
    return Identity(worker, secrets.token_hex(8), lock.lock, socket.gethostname())


def _read(file: int) -> _Kept:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=_Kept)
    except msgspec.DecodeError:  # new, or torn by a full disk
        return _Kept()


def _keep(file: int) -> str:
    """The id in the file. A file that came with a copy of another machine's disk gets a new one:
    two machines with one id would take the name from each other for ever."""
    kept, machine = _read(file), _machine()
    lock = kept.lock if kept.lock and kept.machine == machine else secrets.token_hex(8)
    data = msgspec.json.encode(_Kept(lock, machine, os.getpid())) + b"\n"
    # Over the old text, then cut: a process that dies between loses no id.
    os.pwrite(file, data, 0)
    os.ftruncate(file, len(data))
    return lock


def _machine() -> str:
    try:
        return MACHINE_ID.read_text().strip()
    except OSError:
        return ""
