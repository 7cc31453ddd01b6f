"""Durations as people write and read them."""

from __future__ import annotations

import click
import pytest

from cogrid.cli.duration import seconds, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("10m", 600), ("2h", 7_200), ("7d", 604_800), ("1.5 h", 5_400), ("3D", 259_200)],
)
def test_a_number_and_its_unit(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "7", "d", "-1h", "1w", "1h30m"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write one such as 90s"):
        seconds(text)


def test_durations_are_shown_in_the_unit_that_tells_most() -> None:
    told = [shown(each) for each in (None, 0.0, 119.94, 180, 7_200, 200_000)]
    assert told == ["-", "0.0 s", "119.9 s", "3 min", "2 h", "2 d"]
