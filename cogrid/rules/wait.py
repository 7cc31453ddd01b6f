"""How long a new task would wait in a queue."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from cogrid.model.snapshot import QueueDepth


def ahead(queue: QueueDepth, band: int, user: str) -> int:
    """Tasks that would be served before a new one of this user. Users of a band take turns, so
    another's backlog of a hundred puts one task before the first of a newcomer, and a hundred
    before the hundredth; lower bands come first whole. Without ``waiting``: the depth."""
    if not queue.waiting:
        return queue.depth
    own = queue.waiting.get((band, user), 0)
    before = own
    for (their_band, name), count in queue.waiting.items():
        if their_band < band:
            before += count
        elif their_band == band and name != user:
            before += min(count, own + 1)
    return before


def wait_s(queue: QueueDepth, band: int, user: str) -> float:
    """Seconds until a new task is claimed, at the measured rate of claims; 0 where none was
    measured."""
    return (ahead(queue, band, user) + 1) * queue.gap_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds until a waiting task is claimed: what is expected, and the range in which two of
    three such waits end."""

    expected_s: float
    least_s: float
    most_s: float


def estimate(place: int, queue: QueueDepth) -> Estimate | None:
    """For the task at this place (1 is next): so many claims at the measured rate. Their gaps are
    taken to be independent, so the spread grows with the root of their number. None where no rate
    was measured."""
    if place < 1 or not queue.gap_s:
        return None
    expected_s = place * queue.gap_s
    spread_s = sqrt(place) * queue.gap_sd_s
    return Estimate(expected_s, max(0.0, expected_s - spread_s), expected_s + spread_s)
