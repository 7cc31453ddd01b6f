"""Bytes as tables show them."""

from __future__ import annotations

GIGA = 1e9


def size(amount: object) -> str | None:
    """``1.3 GB``; None where it is no number."""
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    return f"{amount / GIGA:.1f} GB"


def free_of(free: object, total: object) -> str | None:
    """``3.9 of 16.0 GB`` are free; None where it is not known."""
    left, whole = size(free), size(total)
    return f"{left.removesuffix(' GB')} of {whole}" if left and whole else None
