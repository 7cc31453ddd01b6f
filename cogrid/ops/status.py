"""The grid at a glance: one value, printed as a table or as JSON, from one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.snapshot import QueueDepth, Server, Snapshot
from cogrid.model.task import Task
from cogrid.model.worker import Health, Worker
from cogrid.rules.health import health
from cogrid.rules.homes import homes, is_up
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot

SICK = frozenset({Health.DEAD, Health.GHOST, Health.WEDGED, Health.QUARANTINED, Health.DEGRADED})


@dataclass(frozen=True, slots=True)
class RunRow:
    """What a worker runs. age_s: since it was claimed."""

    id: str
    model: str
    user: str
    age_s: float | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker. Ages are seconds; None: never. tasks: ids of what it runs."""

    id: str
    health: str
    state: str
    pool: str
    host: str
    slots: int
    busy: int
    models: list[str]
    registered_at: str | None
    beat_age_s: float | None
    poll_age_s: float | None
    tasks: list[str]
    runs: list[RunRow]
    engine: str
    version: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue that has something. servable: some worker that is up can serve it."""

    name: str
    depth: int
    oldest_s: float | None
    servable: bool


@dataclass(frozen=True, slots=True)
class Status:
    """The whole answer of ``cogrid status``."""

    redis: dict[str, Any]
    workers: list[WorkerRow]
    queues: list[QueueRow]
    tasks: dict[str, int]
    reaper: dict[str, Any]
    warnings: list[str]

    @property
    def findings(self) -> bool:
        """Something needs the operator: a sick worker, a queue nobody serves, or a warning."""
        return (
            any(worker.health in SICK for worker in self.workers)
            or any(not queue.servable for queue in self.queues)
            or bool(self.warnings)
        )


def status(store: Store, limits: Limits) -> Status:
    """Read the grid and say how it is."""
    snapshot = store.read(read_snapshot(store.keys, tasks=True, waits=True, stray=True))
    return describe(snapshot, limits, store.shown, store.keys.prefix)


def describe(snapshot: Snapshot, limits: Limits, shown: str, prefix: str = "") -> Status:
    """The status of a snapshot. shown: the server's address without its password."""
    return Status(
        redis=_redis(snapshot.server, shown, prefix),
        workers=[_worker(worker, snapshot, limits) for worker in _ordered(snapshot)],
        queues=[_queue(queue, snapshot, limits) for queue in snapshot.queues],
        tasks=snapshot.counts,
        reaper=_reaper(snapshot),
        warnings=_warnings(snapshot, limits),
    )


def _ordered(snapshot: Snapshot) -> list[Worker]:
    return sorted(snapshot.workers, key=lambda worker: worker.id)


def _age_s(now_ms: int, then_ms: int | None) -> float | None:
    return round(max(0, now_ms - then_ms) / 1000, 1) if then_ms else None


def _worker(worker: Worker, snapshot: Snapshot, limits: Limits) -> WorkerRow:
    now_ms = snapshot.taken_at_ms
    found = (snapshot.task(task) for task in worker.tasks)
    return WorkerRow(
        id=worker.id,
        health=health(worker, now_ms, limits, snapshot.reaper.hold_until_ms),
        state=worker.state,
        pool=worker.pool,
        host=worker.host,
        slots=worker.slots,
        busy=worker.busy,
        models=[offer.name for offer in worker.offers],
        registered_at=worker.registered_at or None,
        beat_age_s=_age_s(now_ms, worker.beat_at_ms),
        poll_age_s=_age_s(now_ms, worker.polled_at_ms),
        tasks=list(worker.tasks),
        runs=[_run(task, now_ms) for task in found if task],
        engine=worker.engine,
        version=worker.version,
    )


def _run(task: Task, now_ms: int) -> RunRow:
    return RunRow(task.id, task.model, task.user, _age_s(now_ms, task.claimed_at_ms))


def _queue(queue: QueueDepth, snapshot: Snapshot, limits: Limits) -> QueueRow:
    return QueueRow(
        queue.name,
        queue.depth,
        _age_s(snapshot.taken_at_ms, queue.oldest_ms),
        servable(queue, snapshot, limits),
    )


def servable(queue: QueueDepth, snapshot: Snapshot, limits: Limits) -> bool:
    """Whether what waits there is waiting for somebody: its worker is up, or its model has a home
    in any pool (the reaper moves it there)."""
    now_ms, hold_ms = snapshot.taken_at_ms, snapshot.reaper.hold_until_ms
    if queue.worker is not None:
        owner = snapshot.worker(queue.worker)
        return owner is not None and is_up(owner, now_ms, limits, hold_ms)
    return bool(homes(snapshot, queue.model or "", limits))


def _redis(server: Server, shown: str, prefix: str) -> dict[str, Any]:
    return {
        "url": shown,
        "prefix": prefix,
        "flavour": server.flavour if server.version else None,
        "version": server.version or None,
        "mode": server.mode or None,
        "role": server.role or None,
        "maxmemory_policy": server.policy or None,
        "maxmemory_bytes": server.maxmemory_bytes or None,
        "used_memory_bytes": server.used_memory_bytes or None,
        "append_only": server.append_only,
    }


def _reaper(snapshot: Snapshot) -> dict[str, Any]:
    held_ms = snapshot.reaper.hold_until_ms - snapshot.taken_at_ms
    return {
        "last_pass_age_s": _age_s(snapshot.taken_at_ms, snapshot.reaper.last_pass_ms),
        "holding_s": round(held_ms / 1000, 1) if held_ms > 0 else None,
    }


def _warnings(snapshot: Snapshot, limits: Limits) -> list[str]:
    return [*_server_warnings(snapshot.server), *_grid_warnings(snapshot, limits)]


def _server_warnings(server: Server) -> list[str]:
    said = []
    if not server.version:
        said.append(
            "the server does not let us read INFO, so its policy and persistence are unknown: "
            "allow +info to this user"
        )
        return said
    if server.policy and server.policy != "noeviction":
        said.append(
            f"maxmemory-policy is {server.policy}, so the server may drop tasks: "
            "set maxmemory-policy noeviction"
        )
    if server.append_only is False:
        said.append(
            "the append-only file is off, so a crash of the server loses what was accepted since "
            "its last save: set appendonly yes"
        )
    if server.rdb_ok is False:
        said.append("the last save to disk failed, so the server may refuse writes: see its log")
    if server.role not in ("", "master"):
        said.append(f"this server is a {server.role}, which takes no writes: use the primary's URL")
    if server.loading:
        said.append("the server is loading its data: wait")
    return said


def _grid_warnings(snapshot: Snapshot, limits: Limits) -> list[str]:
    said = []
    silent_s = (snapshot.taken_at_ms - snapshot.reaper.last_pass_ms) / 1000
    if not snapshot.reaper.last_pass_ms:
        said.append("no reaper has ever run here: start one with cogrid reaper --daemon")
    elif silent_s > max(limits.pass_window_s, 3 * limits.tick_s):
        said.append(
            f"the reaper's last pass was {silent_s:.0f} s ago: start one with "
            "cogrid reaper --daemon"
        )
    if snapshot.scan_cut:
        said.append("the search for left-over worker hashes was cut short after 10,000 keys")
    return said
