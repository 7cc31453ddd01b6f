"""Gets a stream of bytes to a host: over TCP, a ProxyCommand, or the jump host before it."""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import threading
import time
from typing import Any

import paramiko

from cogrid.errors import HostError, HostFault
from cogrid.remote.foreign import last_line, plain
from cogrid.remote.settings import Settings
from cogrid.remote.tail import Tail
from cogrid.remote.tap import Stream

_DEAD_PEER_MS = 30_000
"""What was sent and not acknowledged for so long ends the connection, which the system would keep
for a quarter of an hour."""
_LAST_WORDS_S = 1.0
"""For what a ProxyCommand that has ended said at last; what it has left running may hold its stderr
for longer."""


def dial(hop: Settings, timeout_s: float, before: paramiko.Transport | None) -> Stream:
    """before: the login on the jump host that this one is reached through. HostError."""
    if before is not None:
        return _through(hop, timeout_s, before)
    if hop.proxy_command:
        return Proxy(hop.proxy_command)
    return _tcp(hop, timeout_s)


class Proxy:
    """The stream of a ProxyCommand: our end of a socket whose other end is its stdin and stdout.

    A real socket has the time limits that a pipe lacks.
    """

    def __init__(self, command: str) -> None:
        self._socket, theirs = socket.socketpair()
        self._closing = threading.Lock()
        self._closed = False
        with theirs:
            # exec: the command is then the process that is ended; so does ssh.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is ours: first what runs there is ended
            )
        assert self._process.stderr is not None
        self._printed = Tail(self._process.stderr)

    def send(self, data: bytes) -> int:
        return self._socket.send(data)

    def recv(self, size: int) -> bytes:
        return self._socket.recv(size)

    def settimeout(self, timeout: float | None) -> None:
        self._socket.settimeout(timeout)

    def said(self) -> str:
        """The last line that it printed, such as what kept it from connecting."""
        self.close()
        return last_line(self._printed.kept)

    def close(self) -> None:
        with self._closing:  # paramiko's thread closes it as well as ours
            if self._closed:
                return
            self._closed = True
            self._socket.close()
            self._end()
            self._printed.wait(_LAST_WORDS_S)

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _through(hop: Settings, timeout_s: float, before: paramiko.Transport) -> Stream:
    place = (hop.host_name, hop.port)
    try:
        return before.open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=timeout_s)
    except paramiko.ChannelException as error:
        raise HostError(
            f"{hop.place} could not be reached from the jump host: {plain(error.text)}",
            f"on the jump host, try: nc -vz {hop.host_name} {hop.port}; its sshd must allow "
            "AllowTcpForwarding",
            host=hop.name,
            kind=HostFault.UNREACHABLE,
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise HostError(
            f"{hop.place} could not be reached from the jump host within {timeout_s:g} s",
            f"on the jump host, try: nc -vz {hop.host_name} {hop.port}",
            host=hop.name,
            kind=HostFault.TIMEOUT,
        ) from error


def _tcp(hop: Settings, timeout_s: float) -> Stream:
    deadline = time.monotonic() + timeout_s
    addresses = _addresses(hop, timeout_s)
    failed: OSError = TimeoutError()
    for number, (family, place) in enumerate(addresses):
        left = (deadline - time.monotonic()) / (len(addresses) - number)
        if left <= 0:
            break
        connected = socket.socket(family, socket.SOCK_STREAM)
        connected.settimeout(left)
        try:
            connected.connect(place)
        except OSError as error:
            connected.close()
            failed = error
        else:
            _watch(connected)
            return connected
    raise _unreached(hop, timeout_s, failed)


def _watch(connected: socket.socket) -> None:
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(AttributeError, OSError):  # only Linux has it
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_PEER_MS)


def _addresses(hop: Settings, timeout_s: float) -> list[tuple[socket.AddressFamily, Any]]:
    """Looked up in a thread: the system's resolver has no deadline."""
    found: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def look() -> None:
        try:
            found.put(socket.getaddrinfo(hop.host_name, hop.port, hop.family, socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.put(OSError(str(error)))

    threading.Thread(target=look, daemon=True).start()
    try:
        answer = found.get(timeout=timeout_s)
    except queue.Empty:
        answer = OSError(f"no answer within {timeout_s:g} s")
    if isinstance(answer, OSError):
        raise HostError(
            f"{hop.place} has no address: {answer}",
            "check its spelling; or say --host ADDRESS, or give the name an address as a [[host]]",
            host=hop.name,
            kind=HostFault.ADDRESS,
        )
    return [(family, place) for family, _, _, _, place in answer]


def _unreached(hop: Settings, timeout_s: float, why: OSError) -> HostError:
    if isinstance(why, TimeoutError):
        return HostError(
            f"{hop.place} did not answer within {timeout_s:g} s",
            "is it switched on, and does a firewall drop what is sent to this port?",
            host=hop.name,
            kind=HostFault.TIMEOUT,
        )
    return HostError(
        f"{hop.place} cannot be reached: {why.strerror or why}",
        "is it switched on, and does its sshd listen on this port?",
        host=hop.name,
        kind=HostFault.UNREACHABLE,
    )
