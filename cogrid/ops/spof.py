"""Single points of failure: models that one worker or one host alone can serve; and what the grid
would lose with some of its workers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from cogrid.errors import NotFoundError
from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.ops.found import the_model, the_worker
from cogrid.rules.homes import all_models
from cogrid.rules.spof import single_points
from cogrid.rules.what_if import Loss, going, loss, losses
from cogrid.store.client import Store
from cogrid.store.gaps import FLEET
from cogrid.store.reading import Reading
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_waiting

OWN = 10_000
"""Tasks in workers' own queues that are looked at."""


@dataclass(frozen=True, slots=True)
class Spof:
    """findings: single points of failure. losses: hosts and pools whose loss takes models away.
    models: how many were looked at."""

    findings: tuple[Finding, ...]
    losses: tuple[Loss, ...]
    models: int


@dataclass(frozen=True, slots=True)
class Without:
    """What would be lost. workers: those that would be gone. running: tasks that they run now,
    which would be taken back. moved: tasks in their own queues, which would move."""

    workers: tuple[str, ...]
    running: int
    moved: int
    findings: tuple[Finding, ...]


def spof(store: Store, limits: Limits, model: str | None = None) -> Spof:
    """The findings, of one model or of all."""
    snapshot = store.read(_read(store))
    store.demand(FLEET)
    named = the_model(snapshot, model) if model else None
    found = single_points(snapshot, limits, named)
    if named is not None:
        return Spof(found, (), 1)
    return Spof(found, losses(snapshot, limits), len(all_models(snapshot)))


def without(
    store: Store, limits: Limits, workers: Collection[str], hosts: Collection[str]
) -> Without:
    """What the grid would lose with these workers and with all workers of these hosts."""
    snapshot = store.read(_read(store))
    store.demand(FLEET)
    for name in workers:
        the_worker(snapshot, name)
    _check_hosts(snapshot, hosts)
    gone = going(snapshot, workers, hosts)
    queues = {worker.queue for worker in gone}
    return Without(
        workers=tuple(worker.id for worker in gone),
        running=sum(len(worker.tasks) for worker in gone),
        moved=sum(queue.depth for queue in snapshot.queues if queue.name in queues),
        findings=loss(snapshot, workers, hosts, limits),
    )


def _check_hosts(snapshot: Snapshot, hosts: Collection[str]) -> None:
    known = sorted({worker.host or worker.id for worker in snapshot.workers})
    for host in hosts:
        if host not in known:
            raise NotFoundError(
                f"no worker runs on host {host!r}", f"hosts: {', '.join(known) or 'none'}"
            )


def _read(store: Store) -> Reading[Snapshot]:
    """The snapshot with the tasks that wait in workers' own queues, whose names do not say what
    models they are for."""
    snapshot = yield from read_snapshot(store.keys, info=False)
    queues = [queue.name for queue in snapshot.queues if queue.worker]
    most = max(1, OWN // max(1, len(queues)))
    waiting = yield from read_waiting(store.keys, queues, most)
    return replace(snapshot, tasks=tuple(task for tasks in waiting.values() for task in tasks))
