"""Waiting for something that takes its time: a line whenever it has got on, and a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from cogrid.cli.output import note

T = TypeVar("T")


def wait(
    steps: Iterable[T],
    told: Callable[[T], str],
    timeout_s: float | None,
    quiet: bool,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """The last step: the one that ends by itself, or the one at the limit. told: what is said of a
    step, on stderr when it is other than before. quiet: say nothing."""
    end_s = None if timeout_s is None else clock() + timeout_s
    said = ""
    for step in steps:
        line = told(step)
        if line != said and not quiet:
            note(line)
        said = line
        if end_s is not None and clock() >= end_s:
            return step
    return step
