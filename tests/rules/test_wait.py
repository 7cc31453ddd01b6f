"""Who is served before a new task."""

from __future__ import annotations

import pytest

from cogrid.rules.wait import ahead, wait_s
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
