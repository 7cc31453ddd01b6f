"""What systemd is told: that the daemon is ready, that its loop turns, that it ends."""

from __future__ import annotations

import os
import socket

READY = "READY=1"
WATCHDOG = "WATCHDOG=1"
STOPPING = "STOPPING=1"


def notify(*states: str) -> None:
    """Tell the manager that started us. Without one (no NOTIFY_SOCKET), or when it does not listen,
    nothing happens: the daemon's work does not depend on it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto("\n".join(states).encode(), address)
    except OSError:
        return
