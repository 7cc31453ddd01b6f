"""Redis comes and goes; the log gets one line each time, however many calls fail."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from cogrid.errors import CogridError

log = logging.getLogger(__name__)

FIRST_TRY = 0.1
LONGEST = 2.0
"""Waits between tries, in ticks (seconds, by default)."""


class Outage:
    """Shared by everybody of one process who talks to Redis; ``who`` tells them apart."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._missing: set[str] = set()
        self._since_s = 0.0

    def lost(self, who: str, error: CogridError) -> None:
        """A call of ``who`` failed."""
        with self._lock:
            first = not self._missing
            self._missing.add(who)
            if first:
                self._since_s = self._clock()
        if first:
            hint = f" ({error.hint})" if error.hint else ""
            log.warning("[redis] lost: %s%s; %s", error.message, hint, self._what)

    def back(self, who: str) -> None:
        """A call of ``who`` succeeded."""
        if not self._missing:
            return
        with self._lock:
            last = self._missing == {who}
            self._missing.discard(who)
        if last:
            log.warning("[redis] back after %.1f s", self._clock() - self._since_s)


def wait_s(failures: int, tick_s: float) -> float:
    """How long to wait after so many failures in a row (1 or more), with jitter, so that a fleet
    does not come back in one moment."""
    longest = min(LONGEST, FIRST_TRY * 2.0 ** min(failures - 1, 16))
    return random.uniform(0.5, 1.0) * longest * tick_s
