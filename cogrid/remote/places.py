"""Where a host's name leads from this side, without connecting to it."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path

from cogrid.errors import CogridError
from cogrid.remote.settings import read
from cogrid.remote.target import Target


def places_of(target: Target, config: Path | None) -> frozenset[tuple[str, int]]:
    """Addresses and ports; none where neither OpenSSH's configuration nor the resolver knows it.

    What is reached through another host is looked up there, so its name counts as known. A name
    that this machine has for itself alone (localhost, 127.0.1.1 on Debian) does not: a machine that
    calls itself so is another one, unless OpenSSH's configuration says so.
    """
    try:
        hop = read(target, config)
        if hop.jumps or hop.proxy_command:
            return frozenset({(hop.host_name, hop.port)})
        found = socket.getaddrinfo(hop.host_name, hop.port, hop.family, socket.SOCK_STREAM)
    except (CogridError, OSError, UnicodeError):
        return frozenset()
    addresses = {str(place[0]) for *_, place in found}
    if hop.host_name == target.name and all(ip_address(each).is_loopback for each in addresses):
        return frozenset()
    return frozenset((address, hop.port) for address in addresses)
