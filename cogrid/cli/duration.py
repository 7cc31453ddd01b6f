"""Durations as people write them: ``90s``, ``10m``, ``2h``, ``7d``."""

from __future__ import annotations

import re

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def seconds(text: str) -> float:
    """The seconds that ``text`` means; for ``type=`` of an option."""
    found = _FORM.fullmatch(text.strip().lower())
    if found is None:
        raise click.BadParameter(f"{text!r} is no duration: write one such as 90s, 10m, 2h or 7d")
    return float(found[1]) * _SECONDS[found[2]]


def shown(seconds: float | None) -> str:
    """A duration as tables show it; "-" where there is none."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"
