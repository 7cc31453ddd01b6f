"""Workers as an operator sees them: a list, one with everything about it, and why one is idle."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import Queue
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Task
from cogrid.model.worker import Offer, Worker
from cogrid.ops.doubt import fleet_unknown, health_word
from cogrid.ops.found import the_worker
from cogrid.ops.status import Only, RunRow, WorkerRow, gpu_share, status
from cogrid.ops.times import age_s, iso
from cogrid.rules.grid import Grid
from cogrid.rules.homes import is_home
from cogrid.rules.idle import Idle, why_idle
from cogrid.rules.moment import Moment
from cogrid.rules.routing import Routing
from cogrid.store.client import Store
from cogrid.store.gaps import FLEET, Part
from cogrid.store.reading import Reading
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_tasks, read_waiting

HEADS = 1
"""Tasks of each queue that a worker is asked about: it takes from the head alone."""
QUEUES = 1_000
"""Queues that it is asked about, the deepest first."""


@dataclass(frozen=True, slots=True)
class Workers:
    """By name."""

    workers: list[WorkerRow]


@dataclass(frozen=True, slots=True)
class OfferFacts:
    """One model of a worker. home: a task for it may wait for this worker; null where its lease
    cannot be read. since_s: seconds in its
    state, null where unknown. gpu_share: 0 to 1, null where it is not loaded."""

    name: str
    state: str
    reason: str | None
    since_s: float | None
    home: bool | None
    loaded: bool
    gpu_share: float | None
    size_bytes: int | None
    vram_bytes: int | None
    context: int | None
    digest: str | None
    supports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Everything about one worker. Ages are seconds, instants ISO 8601 in UTC, null where it never
    was.

    lease_s: what is left of its lease, below 0 where it has run out, null where it has none.
    wanted: what the operator asked of it, until wanted_until, by wanted_by. revoked: runs taken
    from it and not yet let go, each of which occupies a slot. zombies: runs without progress in a
    row. address: the IP address from which its machine reaches Redis, null where it told none.
    claim_age_s: how long its claim loop had stood still when it last renewed. Where not all
    of it can be read, health is ``unknown`` and what depends on the rest null.
    """

    id: str
    health: str
    state: str
    host: str
    address: str | None
    pool: str
    engine: str
    version: str
    instance: str
    supports: tuple[str, ...]
    slots: int
    busy: int | None
    revoked: int | None
    zombies: int
    lease_s: float | None
    registered_at: str | None
    hello_at: str | None
    beat_age_s: float | None
    poll_age_s: float | None
    freed_age_s: float | None
    claim_age_s: float
    wanted: str
    wanted_until: str | None
    wanted_by: str | None
    queue: str
    depth: int | None
    models: tuple[OfferFacts, ...]
    runs: tuple[RunRow, ...]
    report: dict[str, Any]


def workers(store: Store, limits: Limits, only: Only) -> Workers:
    """The workers that fit, by name."""
    return Workers(status(store, limits, only).workers)


def worker_facts(store: Store, limits: Limits, name: str) -> WorkerFacts:
    """One worker, also one of which only a hash is left."""
    snapshot = store.read(read_snapshot(store.keys, info=False, stray=True))
    worker = snapshot.worker(name)
    if worker is None or not worker.known:
        store.demand(FLEET)
    worker = the_worker(snapshot, name)
    found = store.read(read_tasks(store.keys, worker.tasks))
    runs = (task for task in found.values() if task)
    return _facts(worker, runs, snapshot, limits, store.unread)


def idle(store: Store, limits: Limits, routing: Routing, name: str) -> Idle:
    """Why the worker has nothing to do."""
    snapshot, heads = store.read(_read_heads(store))
    store.demand((*FLEET, Part.QUEUES, Part.QUEUED, Part.TASKS))
    worker = the_worker(snapshot, name)
    return why_idle(worker, heads, Grid.of(snapshot, limits), routing, limits)


def _read_heads(store: Store) -> Reading[tuple[Snapshot, dict[Queue, tuple[Task, ...]]]]:
    snapshot = yield from read_snapshot(store.keys, info=False, stray=True)
    deepest = sorted(snapshot.queues, key=lambda queue: -queue.depth)[:QUEUES]
    heads = yield from read_waiting(store.keys, [queue.name for queue in deepest], HEADS)
    return snapshot, heads


def _facts(
    worker: Worker, runs: Iterable[Task], snapshot: Snapshot, limits: Limits,
    unread: Collection[Part],
) -> WorkerFacts:  # fmt: skip
    now_ms, hidden = snapshot.taken_at_ms, Part.WORKERS in unread
    lease_ms = worker.lease_until_ms
    return WorkerFacts(
        id=worker.id,
        health=health_word(worker, snapshot, limits, unread),
        state=worker.state,
        host=worker.host,
        address=worker.address or None,
        pool=worker.pool,
        engine=worker.engine,
        version=worker.version,
        instance=worker.instance,
        supports=worker.supports,
        slots=worker.slots,
        busy=None if hidden else worker.busy,
        revoked=None if hidden else len(worker.revoked),
        zombies=worker.zombies,
        lease_s=round((lease_ms - now_ms) / 1000, 1) if lease_ms is not None else None,
        registered_at=worker.registered_at or None,
        hello_at=iso(worker.hello_at_ms),
        beat_age_s=age_s(now_ms, worker.beat_at_ms),
        poll_age_s=age_s(now_ms, worker.polled_at_ms),
        freed_age_s=age_s(now_ms, worker.freed_at_ms),
        claim_age_s=worker.claim_age_ms / 1000,
        wanted=worker.wish.state,
        wanted_until=iso(worker.wish.until_ms),
        wanted_by=worker.wish.by or None,
        queue=worker.queue,
        depth=_depth(worker, snapshot, unread),
        models=tuple(_offer(offer, worker, snapshot, limits, unread) for offer in worker.offers),
        runs=tuple(
            RunRow(task.id, task.model, task.user, age_s(now_ms, task.claimed_at_ms))
            for task in runs
        ),
        report=worker.report,
    )


def _depth(worker: Worker, snapshot: Snapshot, unread: Collection[Part]) -> int | None:
    hidden = {Part.QUEUES, Part.QUEUED}.intersection(unread)
    return None if hidden else snapshot.queue(worker.queue).depth


def _offer(
    offer: Offer, worker: Worker, snapshot: Snapshot, limits: Limits, unread: Collection[Part]
) -> OfferFacts:
    at = Moment.of(snapshot, limits)
    return OfferFacts(
        name=offer.name,
        state=offer.state,
        reason=offer.reason or None,
        since_s=age_s(at.now_ms, offer.since_ms),
        home=None if fleet_unknown(unread) else is_home(worker, offer.name, at),
        loaded=offer.loaded,
        gpu_share=gpu_share(offer),
        size_bytes=offer.size_bytes or None,
        vram_bytes=offer.vram_bytes or None,
        context=offer.context or None,
        digest=offer.digest or None,
        supports=offer.supports,
    )
