"""Runs commands on a standing login, each with a deadline that holds whatever the network does."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote.crew import Crew
from cogrid.remote.exchange import Exchange, Late, Lost, Stopped
from cogrid.remote.foreign import last_line, plain
from cogrid.remote.script import END_GROUP, boot, header

_OPEN_S = 30.0
"""For opening a channel. The first one waits there for the user's session, for which systemd may
start a manager of its own: seconds, on a small or busy machine."""
_END_S = 5.0
"""For ending what runs there: it is given one second to end by itself, see END_GROUP."""
_SLACK_S = 2.0
"""After this much more than a command's time the connection is closed under it: paramiko waits
without a deadline when the network takes nothing more."""
_PLAIN_S = 30.0
"""For a command that only answers with its exit code."""
_PLAIN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Result:
    """What a script did. code: its exit code, -1 when a signal ended it. cut: ``out`` or ``err``
    were longer than they may be, their middle is missing."""

    code: int
    out: bytes
    err: bytes
    cut: bool

    @property
    def text(self) -> str:
        """``out`` as text, without white space around it."""
        return self.out.decode(errors="replace").strip()


@dataclass(frozen=True, slots=True)
class Through:
    """What a shell is started by, such as sudo, and what that reads from stdin before the shell."""

    command: str = ""
    first: bytes = field(default=b"", repr=False)


class Session:
    """A login's commands. place: for messages. host: as the operator named it."""

    def __init__(self, transport: paramiko.Transport, place: str, host: str, crew: Crew) -> None:
        self.place = place
        self.host = host
        self._transport = transport
        self._crew = crew

    def script(
        self,
        script: str,
        args: tuple[str, ...],
        *,
        stdin: BinaryIO | None = None,
        timeout_s: float,
        limit_bytes: int = 1 << 16,
        on_line: Callable[[str], None] | None = None,
        through: Through = Through(),
    ) -> Result:
        """Runs it by /bin/sh to its end. HostError when the time is over, the connection breaks or
        the shell never starts; what it started is then ended there."""
        mark = secrets.token_hex(8)
        deadline = time.monotonic() + timeout_s
        exchange = Exchange(
            mark,
            first=through.first,
            header=header(mark, script, args),
            stdin=stdin,
            limit_bytes=limit_bytes,
            on_line=on_line,
        )
        with self._crew.busy():
            try:
                with self._channel(timeout_s, named(script)) as channel:
                    channel.exec_command(boot(mark, through.command))
                    code = exchange.run(channel, deadline, self._crew.stop)
            except BaseException:
                # After its channel is closed: an endless output has the connection for itself.
                self._end(exchange.group, through)
                raise
        if not exchange.begun:
            raise self._no_shell(exchange.noise)
        cut = exchange.out.cut or exchange.err.cut
        return Result(code, exchange.out.data, exchange.err.data, cut)

    def plain(self, command: str, stdin: bytes = b"", *, pty: bool = False) -> Result:
        """Runs a command by the login shell itself, for its exit code. HostError."""
        deadline = time.monotonic() + _PLAIN_S
        exchange = Exchange("", first=stdin, limit_bytes=_PLAIN_BYTES)
        with self._crew.busy(), self._channel(_PLAIN_S, named(command)) as channel:
            if pty:
                channel.get_pty()
            channel.exec_command(command)
            code = exchange.run(channel, deadline, self._crew.stop)
        return Result(code, exchange.out.data, exchange.err.data, False)

    @contextlib.contextmanager
    def _channel(self, timeout_s: float, what: str) -> Iterator[paramiko.Channel]:
        """A channel of the connection, and every way in which it can fail as a HostError."""
        deadline = time.monotonic() + timeout_s
        guard = threading.Timer(
            min(timeout_s + _SLACK_S, threading.TIMEOUT_MAX), self._transport.close
        )
        guard.daemon = True
        guard.start()
        try:
            channel = self._open(min(timeout_s, _OPEN_S))
            try:
                yield channel
            finally:
                channel.close()
        except Late:
            raise self._late(timeout_s, what) from None
        except Stopped:
            raise self._stopped(what) from None
        except (Lost, paramiko.SSHException, EOFError, OSError) as error:
            if time.monotonic() > deadline:
                raise self._late(timeout_s, what) from error
            raise self._lost(what) from error
        finally:
            guard.cancel()

    def _open(self, timeout_s: float) -> paramiko.Channel:
        try:
            return self._transport.open_session(timeout=timeout_s)
        except paramiko.ChannelException as error:
            raise self._error(
                f"{self.place} opens no further session: {plain(error.text)}",
                "its sshd limits them: look at MaxSessions there",
                HostFault.UNREACHABLE,
            ) from error
        except paramiko.SSHException as error:
            if not self._transport.is_active():
                raise
            raise self._error(
                f"{self.place} opened no session within {timeout_s:g} s",
                "the network to it is cut, or it has too much to do: ask it again",
                HostFault.TIMEOUT,
            ) from error

    def _end(self, group: int, through: Through) -> None:
        """Ends what still runs there, as far as the connection still carries a command."""
        if not group or not self._transport.is_active():
            return
        calm = Session(self._transport, self.place, self.host, Crew())  # it is not stopped itself
        with contextlib.suppress(HostError):
            calm.script(END_GROUP, (str(group),), timeout_s=_END_S, through=through)

    def _late(self, timeout_s: float, what: str) -> HostError:
        return self._error(
            f"`{what}` on {self.place} took longer than {timeout_s:g} s and was ended there",
            "look on the host what holds it up, or give it more time",
            HostFault.TIMEOUT,
        )

    def _stopped(self, what: str) -> HostError:
        return self._error(f"`{what}` on {self.place} was ended", "", HostFault.STOPPED)

    def _lost(self, what: str) -> HostError:
        return self._error(
            f"the connection to {self.place} broke while `{what}` ran",
            "it may have been done there or not: ask the host again",
            HostFault.LOST,
        )

    def _no_shell(self, noise: str) -> HostError:
        printed = last_line(noise) or "nothing"
        return self._error(
            f"the login shell on {self.place} never came to run /bin/sh; it printed {printed}",
            "its login scripts or its shell end early: look at the user's entry in /etc/passwd, "
            ".bashrc and .profile",
            HostFault.SHELL,
        )

    def _error(self, message: str, hint: str, kind: HostFault) -> HostError:
        return HostError(message, hint, host=self.host, kind=kind)


def named(script: str) -> str:
    """A script's first line, for messages; its arguments are not in it."""
    line = script.strip().partition("\n")[0]
    return line if len(line) <= 60 else line[:57] + "..."
