"""What is wrong, before the reaper acts: the same rules on the same snapshot, nothing written."""

from __future__ import annotations

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.rules.ghosts import ghosts as find_ghosts
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot


def ghosts(store: Store, limits: Limits) -> tuple[Finding, ...]:
    """Workers that look alive and are not: ghosts, dead ones that hold work, hashes left over."""
    return find_ghosts(store.read(read_snapshot(store.keys, waits=True, stray=True)), limits)
