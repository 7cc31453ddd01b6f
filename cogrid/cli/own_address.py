"""Under which address other machines know this one."""

from __future__ import annotations

import contextlib
import socket

ANY = ("0.0.0.0", "::")


def name_for_others(host: str) -> str:
    """An address that other machines can use for one that is listened on."""
    if host.strip("[]") not in ANY:
        return host
    return _own_address() or socket.gethostname()


def _own_address() -> str:
    """This machine's address on its way out; no packet is sent."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return ""
