"""When, and by which measure, a worker is judged."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """now_ms: Redis' time. hold_until_ms: nobody is a ghost before, since the reaper doubts itself
    until then."""

    now_ms: int
    limits: Limits
    hold_until_ms: int = 0

    @staticmethod
    def of(snapshot: Snapshot, limits: Limits) -> Moment:
        """When the snapshot was taken."""
        return Moment(snapshot.taken_at_ms, limits, snapshot.reaper.hold_until_ms)
