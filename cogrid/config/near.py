"""What an unknown name may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def unknown(name: str, names: Iterable[str]) -> str:
    """``is unknown; did you mean lease_s?``"""
    from difflib import get_close_matches  # only where something is wrong

    near = get_close_matches(name, list(names), n=1)
    return f"is unknown; did you mean {near[0]}?" if near else "is unknown"
