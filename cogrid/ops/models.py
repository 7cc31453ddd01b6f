"""Which worker has which model, and whether it is the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.errors import NotFoundError
from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Offer, Worker
from cogrid.ops.doubt import fleet_unknown
from cogrid.ops.found import the_model
from cogrid.ops.status import gpu_share
from cogrid.ops.times import age_s
from cogrid.rules.drift import drift
from cogrid.rules.grid import Grid
from cogrid.rules.homes import all_models
from cogrid.rules.waiting import queued
from cogrid.store.client import Store
from cogrid.store.gaps import FLEET, Part
from cogrid.store.snapshot import read_snapshot


@dataclass(frozen=True, slots=True)
class Copy:
    """One model on one worker. gpu_share: part of it that lies in the GPU's memory, 0 to 1, null
    where it is not loaded or the engine does not say. home: a task for it may wait for this
    worker; null where that cannot be read."""

    worker: str
    host: str
    pool: str
    state: str
    reason: str | None
    home: bool | None
    loaded: bool
    gpu_share: float | None
    digest: str | None
    size_bytes: int | None
    vram_bytes: int | None
    context: int | None
    supports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """homes: workers that serve it. drift: its digest is not the same everywhere. last_home_s:
    seconds since it last had a home, null where it never had one. homes, queued: null where they
    cannot be read."""

    name: str
    homes: tuple[str, ...] | None
    queued: int | None
    drift: bool
    last_home_s: float | None
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class ModelList:
    """By name. findings: what drifts."""

    models: tuple[ModelRow, ...]
    findings: tuple[Finding, ...]


def models(store: Store, limits: Limits, model: str = "", only_drift: bool = False) -> ModelList:
    """Every model that the grid knows, or one."""
    snapshot = store.read(read_snapshot(store.keys, info=False, members=False))
    unread = store.unread
    wanted = _named(store, snapshot, model) if model else ""
    hidden = fleet_unknown(unread)
    uncounted = bool(unread & {Part.QUEUES, Part.QUEUED})
    grid, waits, found = Grid.of(snapshot, limits), queued(snapshot), drift(snapshot)
    drifting = {each.subject for each in found}
    names = [
        name
        for name in all_models(snapshot)
        if wanted in ("", name) and (name in drifting or not only_drift)
    ]
    at_home = {(name, seat.worker.id) for name, seats in grid.homes.items() for seat in seats}
    copies: dict[str, list[Copy]] = {name: [] for name in names}
    for worker in snapshot.workers:
        for offer in worker.offers:
            if offer.name in copies:
                home = None if hidden else (offer.name, worker.id) in at_home
                copies[offer.name].append(_copy(worker, offer, home))
    rows = (
        ModelRow(
            name,
            None if hidden else tuple(seat.worker.id for seat in grid.homes.get(name, ())),
            None if uncounted else waits[name],
            name in drifting,
            age_s(snapshot.taken_at_ms, snapshot.model_homes.get(name)),
            tuple(copies[name]),
        )
        for name in names
    )
    return ModelList(tuple(rows), tuple(each for each in found if each.subject in copies))


def _named(store: Store, snapshot: Snapshot, model: str) -> str:
    try:
        return the_model(snapshot, model)
    except NotFoundError:
        store.demand((*FLEET, Part.MODELS, Part.QUEUES))
        raise


def _copy(worker: Worker, offer: Offer, home: bool | None) -> Copy:
    return Copy(
        worker=worker.id,
        host=worker.host,
        pool=worker.pool,
        state=offer.state,
        reason=offer.reason or None,
        home=home,
        loaded=offer.loaded,
        gpu_share=gpu_share(offer),
        digest=offer.digest or None,
        size_bytes=offer.size_bytes or None,
        vram_bytes=offer.vram_bytes or None,
        context=offer.context or None,
        supports=offer.supports,
    )
