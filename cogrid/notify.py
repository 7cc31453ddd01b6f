"""What a daemon tells systemd (the sd_notify protocol); nothing where nobody listens."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

FEED_S = 1.0
"""Seconds between two feeds of the watchdog; more often would only cost."""


class Notify:
    """Writes to the socket that NOTIFY_SOCKET names. The watchdog is fed by whoever's standstill
    it should notice: a worker's claim loop, the reaper's passes."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        address = env.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the zero byte of an abstract socket.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket: socket.socket | None = None
        self._fed_s = 0.0
        self._unsaid: list[str] = []
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)

    def ready(self) -> None:
        """The process is up. Sent before the engine answers: how long that takes is not systemd's
        to limit, and a start that is cut short would load the same model for ever."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """A line for ``systemctl status``."""
        self._send(f"STATUS={text}")

    def alive(self) -> None:
        """Feeds the watchdog."""
        if self._socket is None:
            return
        now_s = time.monotonic()
        if now_s - self._fed_s >= FEED_S and self._say_rest():
            self._fed_s = now_s
            self._send("WATCHDOG=1")

    def stopping(self, within_s: float = 0.0) -> None:
        """It is on its way out and finishes what it runs. within_s: how long that may take; more
        than the unit's TimeoutStopSec= is then granted (EXTEND_TIMEOUT_USEC=)."""
        longer = f"\nEXTEND_TIMEOUT_USEC={within_s * 1e6:.0f}" if within_s else ""
        self._send(f"STOPPING=1{longer}")

    def close(self) -> None:
        """Lets go of the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str) -> None:
        """Says it now, or before the next feed: systemd takes in a few messages at a time, and the
        work must not stand still until it has, nor the start count as failed because one of many
        units was not heard."""
        if self._socket is not None:
            self._unsaid.append(message)
            self._say_rest()

    def _say_rest(self) -> bool:
        """Whether everything is said."""
        while self._socket is not None and self._unsaid:
            try:
                self._socket.sendto(self._unsaid[0].encode(), self._address)
            except BlockingIOError:
                return False
            except OSError:
                pass  # systemd goes on without us, and so do we
            del self._unsaid[0]
        return True
