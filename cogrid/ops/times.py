"""Redis time as people and programs read it."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at_ms: int | None) -> str | None:
    """An instant (ms since 1970) in ISO 8601, UTC, to the millisecond; None for 0 or none."""
    if not at_ms:
        return None
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age_s(now_ms: int, then_ms: int | None) -> float | None:
    """Seconds since an instant, to the tenth; None where it never was."""
    return round(max(0, now_ms - then_ms) / 1000, 1) if then_ms else None
