"""What was used: requests, tokens and seconds by user, key, model and worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from cogrid.store.api_keys import ApiKey, read_keys
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.gaps import Part
from cogrid.store.usage import Used, read_usage

KEPT_DAYS = 35
"""Days that are kept."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The sum for one name. seconds: of runs, from the claim to the end; tokens: of prompts and
    answers, as the engines counted them."""

    name: str
    requests: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Usage:
    """from_day, to_day: whole days, UTC, both included. total and every list add up the same runs.
    Each list has the one that used most seconds first. keys: by label, or by id where it was
    revoked, or where our user may not read API keys; so too among the users, where whoever came
    with a key named nobody."""

    from_day: str
    to_day: str
    total: UsageRow
    users: tuple[UsageRow, ...]
    keys: tuple[UsageRow, ...]
    models: tuple[UsageRow, ...]
    workers: tuple[UsageRow, ...]


def usage(store: Store, since_s: float) -> Usage:
    """The days since then, today included; at most as many as are kept."""
    today = datetime.fromtimestamp(store.read(read_clock()) / 1000, UTC).date()
    count = min(KEPT_DAYS, max(1, ceil(since_s / DAY_S)))
    days = [(today - timedelta(days=back)).isoformat() for back in range(count)]
    used = store.read(read_usage(store.keys, days))
    store.demand((Part.USAGE,))
    labels = _labels(store.read(read_keys(store.keys)).values())
    return Usage(
        from_day=days[-1],
        to_day=days[0],
        total=_sum("total", used),
        users=_by(used, lambda each: labels.get(each.user, each.user)),
        keys=_by(used, lambda each: labels.get(each.api_key, each.api_key)),
        models=_by(used, lambda each: each.model),
        workers=_by(used, lambda each: each.worker),
    )


def _labels(keys: Iterable[ApiKey]) -> dict[str, str]:
    return {key.id: key.label for key in keys}


def _by(used: Iterable[Used], name_of: Callable[[Used], str]) -> tuple[UsageRow, ...]:
    groups: dict[str, list[Used]] = {}
    for each in used:
        if name := name_of(each):
            groups.setdefault(name, []).append(each)
    rows = (_sum(name, group) for name, group in groups.items())
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.name)))


def _sum(name: str, used: Iterable[Used]) -> UsageRow:
    sums = {"requests": 0, "tokens": 0, "ms": 0}
    for each in used:
        sums[each.what] = sums.get(each.what, 0) + each.amount
    return UsageRow(name, sums["requests"], sums["tokens"], round(sums["ms"] / 1000, 3))
