"""A time of day as people write it: ``23:00``."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

_FORM = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def until(text: str, now: datetime | None = None) -> float:
    """Seconds until that time comes next on this machine's clock; for ``type=`` of an option."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is no time of day: write one such as 23:00")
    here = now or datetime.now().astimezone()
    then = here.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    if then <= here:
        then += timedelta(days=1)
    return (then - here).total_seconds()
