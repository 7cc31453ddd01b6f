"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 task``, ``3 tasks``; ``noun`` takes a plain s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
