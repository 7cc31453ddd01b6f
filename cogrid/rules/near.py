"""Which names an unknown one may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three of the known names, the nearest first."""
    by_lower = {each.lower(): each for each in sorted(known)}
    return tuple(by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3))
