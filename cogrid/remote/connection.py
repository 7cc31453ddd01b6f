"""A standing connection to a host: commands and files, each with a deadline."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote import crew, sudo
from cogrid.remote.access import Access
from cogrid.remote.put import PUT, why
from cogrid.remote.reach import reach
from cogrid.remote.session import Result, Session, Through
from cogrid.remote.settings import Settings, route
from cogrid.remote.target import Target

__all__ = ["Connection", "Result", "connect"]

# What goes wrong is raised by us in one sentence; paramiko would also print a traceback of its
# thread, since a log that nobody set up prints errors.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def connect(target: Target, access: Access) -> Connection:
    """Logs in on a host, over its jump hosts; a context manager.

    HostError when it cannot be reached, is not the host that is known, or lets nobody in; the
    message says it of the jump host where that is the one that failed.
    """
    hops = route(target, access.config)
    reached: list[paramiko.Transport] = []
    notes: list[str] = []
    try:
        for hop in hops:
            transport, more = reach(hop, access, reached[-1] if reached else None)
            reached.append(transport)
            notes += more
    except BaseException as error:
        for transport in reversed(reached):
            transport.close()
        if isinstance(error, HostError):
            raise _of_target(target, error, on_the_way=len(reached) < len(hops) - 1) from error
        raise
    return Connection(tuple(reached), target, access, hops[-1], tuple(notes))


def _of_target(target: Target, error: HostError, *, on_the_way: bool) -> HostError:
    message = error.message
    if on_the_way:
        message = f"{target.shown} was not reached, since its jump host failed: {message}"
    return HostError(message, error.hint, host=target.name, kind=error.kind)


class Connection:
    """A login on a host; a context manager.

    user, address, port: those it really has. notes: what the operator should know, such as an
    agent that does not answer.
    """

    def __init__(
        self,
        transports: tuple[paramiko.Transport, ...],
        target: Target,
        access: Access,
        last: Settings,
        notes: tuple[str, ...],
    ) -> None:
        self.target = target
        self.user = last.user
        self.address = last.host_name
        self.port = last.port
        self.notes = notes
        self._transports = transports
        self._asked = access.asked
        self._session = Session(transports[-1], last.place, target.name, crew.current())
        self._to_root: Through | None = None
        self._deciding = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, and those to the jump hosts."""
        for transport in reversed(self._transports):
            transport.close()

    def run(
        self,
        script: str,
        *args: str,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        root: bool = False,
        limit_bytes: int = 1 << 20,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        """Runs a script of POSIX sh by /bin/sh, whatever the login shell is; args are $1, $2 ….

        timeout_s: may be math.inf, such as to follow a log; a connection that died is noticed all
        the same. root: through sudo where the login is not root. limit_bytes: of each output, head
        and tail are kept. on_line: called with each line of stdout as it comes. HostError when the
        host fails or the time is over; then everything the script started is ended there.
        """
        return self._session.script(
            script,
            args,
            stdin=io.BytesIO(stdin),
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
            on_line=on_line,
            through=self._root() if root else Through(),
        )

    def put(
        self,
        path: str,
        content: bytes | Path,
        *,
        mode: int,
        owner: str = "",
        root: bool = False,
        timeout_s: float = 120.0,
    ) -> None:
        """Writes a file there whole or not at all: beside it first, synced, then renamed.

        content: the bytes, or a file here. mode: it has it before it has content. owner: user, or
        user:group, as chown takes it. HostError when it cannot be written; then nothing is left.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
            done = self._session.script(
                PUT,
                (path, f"{mode:o}", owner, str(size)),
                stdin=source,
                timeout_s=timeout_s,
                through=self._root() if root else Through(),
            )
        if done.code != 0:
            raise HostError(
                f"{path} cannot be written on {self._session.place}: {why(done)}",
                f"what was there is as before; is there space, and may {self.user} write there?",
                host=self.target.name,
                kind=HostFault.FILE,
            )

    def _root(self) -> Through:
        """Decided once for the connection; HostError where the login cannot act as root."""
        with self._deciding:
            if self._to_root is None:
                self._to_root = sudo.way_to_root(self._session, self.user, self._asked)
            return self._to_root
