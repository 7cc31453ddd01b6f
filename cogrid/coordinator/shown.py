"""Text that clients made up, as it may stand in sentences and in logs."""

from __future__ import annotations


def shown(text: str, most: int = 100) -> str:
    """At most so many characters on one line; what no terminal should get is written out."""
    cut = text[:most]
    return cut if cut.isprintable() else ascii(cut)[1:-1]
