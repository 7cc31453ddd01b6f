"""Whether an address can be listened on, asked before anything is started there."""

from __future__ import annotations

import errno
import socket
from typing import Final

from cogrid.errors import CogridError, UsageError

NOT_HERE: Final = "name an address of this machine (`ip -br addr` shows them), or 0.0.0.0 for all"


def check_free(host: str, port: int, cure: str) -> None:
    """CogridError, with the cure as its hint, where another program listens on the address.
    UsageError where this machine does not have it, or it is no address at all."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: it has no address", NOT_HERE) from error
    family, kind, protocol, _, place = found[0]
    with socket.socket(family, kind, protocol) as probe:
        # As servers do: an address that was in use a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as error:
            message = f"cannot listen on {host}:{port}: {error.strerror}"
            if error.errno == errno.EADDRNOTAVAIL:
                raise UsageError(message, NOT_HERE) from error
            if error.errno == errno.EADDRINUSE:
                raise CogridError(message, cure) from error
