"""Back-off and quarantine times."""

from __future__ import annotations

import pytest

from cogrid.model.limits import Limits
from cogrid.rules.retry import backoff_s, quarantine_s

LIMITS = Limits()


@pytest.mark.parametrize(
    ("attempts", "jitter", "seconds"),
    [
        (0, 0, 1),
        (1, 0, 1),
        (2, 0, 2),
        (5, 0, 16),
        (6, 0, 30),
        (10**9, 0, 30),
        (3, 1, 4.8),
        (3, -1, 3.2),
    ],
)
def test_back_off_doubles_up_to_its_limit(attempts: int, jitter: float, seconds: float) -> None:
    assert backoff_s(attempts, LIMITS, jitter) == pytest.approx(seconds)


@pytest.mark.parametrize(("times", "seconds"), [(1, 10), (2, 20), (5, 160), (6, 300), (10**9, 300)])
def test_quarantine_doubles_up_to_its_limit(times: int, seconds: float) -> None:
    assert quarantine_s(times, LIMITS) == seconds
