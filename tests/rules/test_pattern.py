"""Patterns that could run away are counted before they do."""

from __future__ import annotations

import re

import pytest

from cogrid.rules.pattern import MOST_WAYS, compiled, ways


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc", 1),
        ("[ab]c", 1),
        ("a*", 101),
        ("a+?", 100),
        ("a{0,9}b{0,9}", 100),
        ("(?:ab)+", 100),
        ("foo|bar|a?", 4),
        ("(foo|bar){3}", 8),
        ("(?=a?)(?!b?)x", 4),
        ("(a)?(?(1)b?|c)", 6),
        ("(?>a?)", 2),
    ],
)
def test_ways(pattern: str, expected: float) -> None:
    assert ways(pattern, 100) == expected


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", r"(\w+\s?)*x", "(a|aa)+$", ".*.*x", "(a?){40}", "(a*b*)*"]
)
def test_what_runs_away_is_far_above_the_limit(pattern: str) -> None:
    assert ways(pattern, 4000) > MOST_WAYS


@pytest.mark.parametrize(
    "pattern", [r"\bdef \w+\(", "foo.*bar", r"(?:\d{1,3}\.){3}\d{1,3}", "^```"]
)
def test_ordinary_patterns_are_below(pattern: str) -> None:
    assert ways(pattern, 4000) <= MOST_WAYS


def test_what_is_no_pattern_raises() -> None:
    with pytest.raises(re.error):
        ways("(", 10)


def test_patterns_know_neither_case_nor_one_line() -> None:
    assert compiled("^abc$").search("x\nABC\ny")
