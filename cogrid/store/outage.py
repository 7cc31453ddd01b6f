"""Redis comes and goes; the log gets one line each time, however many calls fail."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable

from cogrid.store.refusal import StoreError

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
        self._told: set[str] = set()
        self._since_s = 0.0
        self._over_s = -math.inf
        self._error: StoreError | None = None

    @property
    def error(self) -> StoreError | None:
        """What is wrong now, as it was last told; None where nothing is."""
        return self._error

    def doubtful(self, within_s: float) -> bool:
        """True in an outage and for so long after it: others may have suffered the same."""
        return self._error is not None or self._clock() - self._over_s < within_s

    def lost(self, who: str, error: StoreError) -> None:
        """A call of ``who`` failed."""
        with self._lock:
            first = not self._missing
            self._missing.add(who)
            if first:
                self._since_s = self._clock()
                self._told.clear()
            # What passes by itself needs no second line, what somebody must mend does.
            news = first or not (error.passing or error.code in self._told)
            if news:
                self._told.add(error.code)
                self._error = error
        hint = f" ({error.hint})" if error.hint else ""
        if first:
            log.warning("[redis] lost: %s%s; %s", error.message, hint, self._what)
        elif news:
            log.warning("[redis] not yet back: %s%s", error.message, hint)

    def back(self, who: str) -> None:
        """A call of ``who`` succeeded."""
        if self._missing and self._left(who):
            log.warning("[redis] back after %.1f s", self._over_s - self._since_s)

    def gone(self, who: str) -> None:
        """``who`` asks no more, so nothing is known of its calls."""
        self._left(who)

    def _left(self, who: str) -> bool:
        """True where it was the last that was missing."""
        with self._lock:
            last = self._missing == {who}
            self._missing.discard(who)
            if last:
                self._over_s = self._clock()
                self._error = None
            return last


def wait_s(failures: int, tick_s: float) -> float:
    """How long to wait after so many failures in a row (1 or more), with jitter, so that a fleet
    does not come back in one moment."""
    longest = min(LONGEST, FIRST_TRY * 2.0 ** min(failures - 1, 16))
    return random.uniform(0.5, 1.0) * longest * tick_s
