"""How much work a regular expression can make in the worst case.

Python's matcher cannot be stopped, and the texts come from anybody, so a pattern that could run
away is refused when the configuration is read.
"""

from __future__ import annotations

import re
from typing import Any

MOST_WAYS = 20_000
"""More ways than this to match at one place would take more than about a second on the longest
text that is looked at; one ``*`` over it counts 4,000."""


def ways(pattern: str, length: int) -> float:
    """In how many ways the pattern can be tried at one place of a text of ``length`` characters.
    ``re.error`` where it is no regular expression.

    ``a*`` can be tried in ``length`` ways, ``a*b*`` in their product, and what stands inside a
    repeat in that many ways to the power of the repeats: ``(a+)+`` runs away, ``(ab)+`` does not.
    """
    from re import _parser  # type: ignore[attr-defined]  # the only reader of Python's own syntax

    return _sequence(_parser.parse(pattern), length)


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as domain rules use it: without case, ``^`` and ``$`` at every line."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def _sequence(items: Any, length: int) -> float:
    product = 1.0
    for name, argument in items:
        product = min(product * _item(str(name), argument, length), 1e300)
    return product


def _item(name: str, argument: Any, length: int) -> float:
    match name:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, body = argument
            times = min(int(most), length)
            inside = _sequence(body, length)
            return max(times - int(least), 0) + 1 if inside == 1 else _power(inside, times)
        case "BRANCH":
            return sum(_sequence(branch, length) for branch in argument[1])
        case "SUBPATTERN":
            return _sequence(argument[3], length)
        case "ASSERT" | "ASSERT_NOT":
            return _sequence(argument[1], length)
        case "ATOMIC_GROUP":
            return _sequence(argument, length)
        case "GROUPREF_EXISTS":
            return sum(_sequence(side, length) for side in argument[1:] if side is not None)
        case _:
            return 1


def _power(base: float, times: int) -> float:
    try:
        return min(float(base) ** times, 1e300)
    except OverflowError:
        return 1e300
