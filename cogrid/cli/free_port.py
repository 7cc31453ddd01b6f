"""Whether an address can be listened on, asked before anything is started there."""

from __future__ import annotations

import contextlib
import errno
import socket

from cogrid.errors import CogridError


def check_free(host: str, port: int, cure: str) -> None:
    """CogridError, with the cure as its hint, where another program listens on the address or this
    machine does not have it. A name that cannot be resolved is left to whoever listens."""
    with contextlib.suppress(socket.gaierror):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: an address that was in use a moment ago is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                    message = f"cannot listen on {host}:{port}: {error.strerror}"
                    raise CogridError(message, cure) from error
