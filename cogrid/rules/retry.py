"""How long to wait before something is tried again."""

from __future__ import annotations

from cogrid.model.limits import Limits

SPREAD = 0.2
"""Back-offs are spread by a fifth either way, so that tasks which failed together do not come
back together."""


def backoff_s(attempts: int, limits: Limits, jitter: float) -> float:
    """Seconds until the next attempt after ``attempts`` failed ones (1 or more): backoff_s,
    doubled for each further one, at most backoff_max_s; then spread. jitter: -1 to 1, drawn by
    the caller."""
    return _doubled(limits.backoff_s, attempts, limits.backoff_max_s) * (1 + SPREAD * jitter)


def quarantine_s(times: int, limits: Limits) -> float:
    """Seconds that a model stays in its ``times``-th quarantine in a row (1 or more):
    quarantine_s, doubled for each further one, at most quarantine_max_s."""
    return _doubled(limits.quarantine_s, times, limits.quarantine_max_s)


def _doubled(first_s: float, times: int, most_s: float) -> float:
    doublings = min(max(times - 1, 0), 64)  # 2**64 is above any limit and still a sane float
    return min(first_s * 2.0**doublings, most_s)
