"""The breaker of one model: after faults in a row it is left alone for a while, then probed."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.rules.retry import quarantine_s


class Breaker:
    """Counts what the engine did wrong (refused, reset, 5xx, silence, truncation), never what the
    client or the request did. Times are monotonic seconds of the caller."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._faults = 0
        self._times = 0
        self.until_s: float | None = None
        """When its quarantine ends with a probe; None while it is in none."""

    @property
    def open(self) -> bool:
        """True while the model is in quarantine."""
        return self.until_s is not None

    def fault(self, now_s: float) -> bool:
        """One more fault of a run; True if it was one too many."""
        self._faults += 1
        if self.open or self._faults < self._limits.quarantine_after:
            return False
        self.trip(now_s)
        return True

    def trip(self, now_s: float) -> None:
        """Quarantine, or another one: each in a row is twice as long as the last."""
        self._times += 1
        self._faults = 0
        self.until_s = now_s + quarantine_s(self._times, self._limits)

    def hurry(self, now_s: float) -> None:
        """The reason has gone (the engine answers again): probe it now."""
        if self.open:
            self.until_s = now_s

    def passed(self) -> None:
        """A probe went well: runs may come. Only a whole run proves the model good again, so the
        next quarantine is still a longer one."""
        self._faults = 0
        self.until_s = None

    def good(self) -> None:
        """A run went well."""
        self._faults = 0
        self._times = 0
