"""Names that exist, for somebody who is about to type one: bounded, in one round trip."""

from __future__ import annotations

from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain
from cogrid.store.script import text

MOST = 1_000
"""Nobody reads more than that in a completion."""


def read_worker_names(keys: Keys) -> Reading[tuple[str, ...]]:
    """Workers with a lease, also one that has run out."""
    return (yield from _members(keys.workers))


def read_model_names(keys: Keys) -> Reading[tuple[str, ...]]:
    """Models that had a home in the last 30 days."""
    return (yield from _members(keys.models))


def read_open_tasks(keys: Keys) -> Reading[tuple[str, ...]]:
    """Ids of open tasks, those that are due first."""
    return (yield from _members(keys.due))


def _members(index: str) -> Reading[tuple[str, ...]]:
    (found,) = yield [("ZRANGE", index, 0, MOST - 1)]
    return tuple(text(name) for name in certain(found))
