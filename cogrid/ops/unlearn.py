"""A model that the last worker has thrown away is none any more that the grid asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import OfferState
from cogrid.ops.operator import operator
from cogrid.rules.waiting import queued
from cogrid.store.administration import forget_model, note
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot

LOOK_S = 0.25
"""Between two looks whether the workers have told that they no longer have it."""
TOLD_WITHIN_S = 30.0
"""A worker tells at once what it serves; this is a renewal that was lost, and some."""
PASSES = 2
"""So many ticks after that, no pass of the reaper is about that still knows the model."""


def unlearn(
    store: Store, limits: Limits, model: str, gone: Collection[str],
    sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> bool:  # fmt: skip
    """Know the model no more, once nobody has it and nothing waits for it; False where somebody
    still does. gone: workers that have thrown it away. One whose configuration names it misses it
    from now on, so there it stays known."""
    if _having(_read(store), model) - set(gone):
        return False
    end_s = clock() + TOLD_WITHIN_S
    while _having(_read(store), model) and clock() < end_s:
        sleep(LOOK_S)
    sleep(PASSES * limits.tick_s)
    snapshot = _read(store)
    if any(worker.offer(model) for worker in snapshot.workers) or queued(snapshot)[model]:
        return False
    store.do(note(store.keys, f"model forgotten: {model} by {operator()}"))
    return store.do(forget_model(store.keys, model))


def _having(snapshot: Snapshot, model: str) -> set[str]:
    """Workers that say that they have it, in whatever state."""
    offers = {worker.id: worker.offer(model) for worker in snapshot.workers}
    return {
        worker
        for worker, offer in offers.items()
        if offer and offer.state is not OfferState.MISSING
    }


def _read(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False))
