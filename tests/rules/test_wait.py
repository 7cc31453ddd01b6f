"""Who is served before a new task."""

from __future__ import annotations

import pytest

from cogrid.rules.wait import Estimate, ahead, estimate, wait_s
from tests.build import a_queue

QUEUE = "tasks:cpu:shared:gemma3:1b"


@pytest.mark.parametrize(
    ("waiting", "band", "user", "expected"),
    [
        ({}, 0, "ada", 7),
        ({(0, "bob"): 100}, 0, "ada", 1),
        ({(0, "bob"): 100}, 0, "bob", 100),
        ({(0, "bob"): 100, (0, "ada"): 2}, 0, "ada", 5),
        ({(2, "bob"): 100}, 0, "ada", 0),
        ({(0, "bob"): 100, (2, "ada"): 1}, 2, "ada", 101),
    ],
)
def test_ahead(waiting: dict[tuple[int, str], int], band: int, user: str, expected: int) -> None:
    queue = a_queue(QUEUE, 7, waiting=waiting, gap_s=2.0)
    assert ahead(queue, band, user) == expected
    assert wait_s(queue, band, user) == (expected + 1) * 2.0


def test_without_a_rate_no_wait_is_claimed() -> None:
    assert wait_s(a_queue(QUEUE, 500), 0, "ada") == 0.0


def test_an_estimate_grows_with_the_place_and_its_spread_with_the_root() -> None:
    queue = a_queue(QUEUE, 9, gap_s=2.0, gap_sd_s=0.5)
    assert estimate(1, queue) == Estimate(2.0, 1.5, 2.5)
    assert estimate(9, queue) == Estimate(18.0, 16.5, 19.5)
    assert estimate(4, a_queue(QUEUE, 9, gap_s=1.0, gap_sd_s=3.0)) == Estimate(4.0, 0.0, 10.0)


def test_there_is_no_estimate_without_a_rate_or_a_place() -> None:
    assert estimate(3, a_queue(QUEUE, 9)) is None
    assert estimate(0, a_queue(QUEUE, 9, gap_s=1.0)) is None
