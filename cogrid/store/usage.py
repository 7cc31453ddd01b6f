"""What was used, day by day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain, hash_of

PARTS = 5
"""user, key, model, worker, what is counted."""


@dataclass(frozen=True, slots=True)
class Used:
    """A sum of one day, for one user, key, model and worker that came together. api_key: the
    public id of a key, "" without one. what: requests, tokens or ms."""

    day: str
    user: str
    api_key: str
    model: str
    worker: str
    what: str
    amount: int


def read_usage(keys: Keys, days: Iterable[str]) -> Reading[tuple[Used, ...]]:
    """The sums of these days (YYYY-MM-DD, UTC), in one round trip."""
    wanted = tuple(days)
    replies = yield [("HGETALL", keys.usage(day)) for day in wanted]
    return tuple(
        used
        for day, reply in zip(wanted, replies, strict=True)
        for name, amount in hash_of(certain(reply)).items()
        if (used := _used(day, name, int(amount)))
    )


def _used(day: str, name: str, amount: int) -> Used | None:
    """None for a field that somebody else has written."""
    parts = name.rsplit("\t", PARTS - 1)
    if len(parts) != PARTS:
        return None
    user, api_key, model, worker, what = parts
    return Used(day, user, api_key, model, worker, what, amount)
