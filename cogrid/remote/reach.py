"""One host on the way: a stream to it, its keys, the check of its host key, the login."""

from __future__ import annotations

import socket
import threading
import time
from typing import cast

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from cogrid.errors import HostError, HostFault
from cogrid.remote import greeting, host_key
from cogrid.remote.access import Access
from cogrid.remote.dial import Proxy, dial
from cogrid.remote.foreign import plain
from cogrid.remote.login import log_in
from cogrid.remote.settings import Settings
from cogrid.remote.tap import Tap

_ALIVE_S = 10.0
"""Something is said at least so often, so that a dead connection is noticed."""
_POLL_S = 0.1


def reach(
    hop: Settings, access: Access, before: paramiko.Transport | None
) -> tuple[paramiko.Transport, tuple[str, ...]]:
    """A login on this host, with notes for the operator. before: the login on the jump host that
    it is reached through. HostError, then nothing is left open.

    Each phase has the time limit of the configuration: the way there, greeting and keys, login.
    """
    limit_s = hop.connect_s or access.connect_s
    entries = host_key.entries_of(hop)
    tap = Tap(dial(hop, limit_s, before))
    transport = paramiko.Transport(cast(socket.socket, tap))  # it wants no more than Stream has
    try:
        options = transport.get_security_options()
        options.key_types = host_key.preferred(entries, tuple(options.key_types))
        _agree(transport, tap, hop, limit_s)
        notes = host_key.check(hop, access, entries, transport.get_remote_server_key())
        transport.auth_timeout = limit_s
        notes += log_in(transport, hop, access)
        transport.set_keepalive(_ALIVE_S)
    except BaseException:
        transport.close()
        tap.close()
        raise
    return transport, notes


def _agree(transport: paramiko.Transport, tap: Tap, hop: Settings, limit_s: float) -> None:
    """Greeting and keys."""
    done = threading.Event()
    # Ours is the deadline; paramiko's own would tell the phases apart only by their words.
    transport.banner_timeout = transport.handshake_timeout = limit_s + 5
    deadline = time.monotonic() + limit_s
    transport.start_client(event=done)
    while transport.is_active() and not done.wait(_POLL_S):
        if time.monotonic() > deadline:
            raise _silent(hop, tap, limit_s)
    if not transport.is_active() or not transport.initial_kex_done:
        raise _no_agreement(hop, transport, tap)


def _silent(hop: Settings, tap: Tap, limit_s: float) -> HostError:
    if tap.received and not greeting.is_ssh(tap.received):
        return _not_ssh(hop, tap)
    what = "greets and then says nothing" if tap.received else "takes connections and says nothing"
    return HostError(
        f"{hop.place} {what} within {limit_s:g} s",
        "is its sshd hung or the machine overloaded? Look on its console: systemctl status ssh",
        host=hop.name,
        kind=HostFault.TIMEOUT,
    )


def _no_agreement(hop: Settings, transport: paramiko.Transport, tap: Tap) -> HostError:
    if isinstance(transport.get_exception(), IncompatiblePeer):
        return _no_algorithm(hop, transport, tap)
    if tap.received and not greeting.is_ssh(tap.received):
        return _not_ssh(hop, tap)
    if not tap.received and isinstance(tap.stream, Proxy):
        return HostError(
            f"the ProxyCommand to {hop.place} ended without a connection: {tap.stream.said()}",
            f"run it by hand: {hop.proxy_command}",
            host=hop.name,
            kind=HostFault.UNREACHABLE,
        )
    return HostError(
        f"{hop.place} closed the connection before it was set up",
        "its own log says why: journalctl -u ssh (MaxStartups, a ban, or no host key)",
        host=hop.name,
        kind=HostFault.LOST,
    )


def _not_ssh(hop: Settings, tap: Tap) -> HostError:
    begins = plain(tap.received[:30].decode(errors="replace"))
    return HostError(
        f"what answers at {hop.place} is no SSH server: it begins with {begins}",
        "give the port of its sshd: host:port",
        host=hop.name,
        kind=HostFault.NOT_SSH,
    )


def _no_algorithm(hop: Settings, transport: paramiko.Transport, tap: Tap) -> HostError:
    return HostError(
        f"{hop.place} and this side have no {_lacking(transport, tap)} in common",
        "update its sshd; where only its host keys are old: ssh-keygen -A there, then restart it",
        host=hop.name,
        kind=HostFault.ALGORITHM,
    )


def _lacking(transport: paramiko.Transport, tap: Tap) -> str:
    offer = greeting.offer(tap.received)
    if offer is None:
        return "algorithm"
    for what, theirs, ours in (
        ("host key algorithm", offer.host_keys, transport.preferred_keys),
        ("key exchange algorithm", offer.kex, transport.preferred_kex),
        ("cipher", offer.ciphers, transport.preferred_ciphers),
        ("message authentication code", offer.macs, transport.preferred_macs),
    ):
        if not set(theirs) & set(ours):
            return f"{what} (it offers {', '.join(theirs)})"
    return "algorithm"
