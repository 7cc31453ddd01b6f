"""The grid at a glance: one value, printed as a table or as JSON, from one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.snapshot import QueueDepth, Server, Snapshot
from cogrid.model.task import Task
from cogrid.model.worker import Health, Offer, Worker
from cogrid.ops.doubt import UNKNOWN, fleet_unknown, health_word
from cogrid.ops.found import the_model, the_worker
from cogrid.ops.times import age_s
from cogrid.rules.grid import Grid
from cogrid.rules.homes import is_up
from cogrid.rules.moment import Moment
from cogrid.store.client import Store
from cogrid.store.gaps import FLEET, Part
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
class LoadedRow:
    """A model in memory. gpu_share: part of it in the GPU's memory, 0 to 1, null where unknown."""

    name: str
    size_bytes: int | None
    vram_bytes: int | None
    gpu_share: float | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker. Ages are seconds; null: never. tasks: ids of what it runs. loaded: models in
    memory. report: further facts that it tells of its machine. address: the IP address from which
    its machine reaches Redis, null where it told none. Where workers cannot be read, its
    health is ``unknown``, and slots and busy are null."""

    id: str
    health: str
    state: str
    pool: str
    host: str
    address: str | None
    slots: int | None
    busy: int | None
    models: list[str]
    registered_at: str | None
    beat_age_s: float | None
    poll_age_s: float | None
    tasks: list[str]
    runs: list[RunRow]
    engine: str
    version: str
    loaded: list[LoadedRow]
    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Only:
    """What status is narrowed to; "" narrows nothing."""

    worker: str = ""
    pool: str = ""
    model: str = ""

    def has_worker(self, worker: Worker) -> bool:
        """True for a worker that is to be shown."""
        return (
            self.worker in ("", worker.id)
            and self.pool in ("", worker.pool)
            and (not self.model or worker.offer(self.model) is not None)
        )

    def has_queue(self, queue: QueueDepth) -> bool:
        """True for a queue that is to be shown."""
        return (
            self.worker in ("", queue.worker)
            and self.pool in ("", queue.pool)
            and self.model in ("", queue.model)
        )


ALL = Only()


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue that has something. servable: some worker that is up can serve it. depth, servable:
    null where that cannot be read."""

    name: str
    depth: int | None
    oldest_s: float | None
    servable: bool | None


@dataclass(frozen=True, slots=True)
class Status:
    """The whole answer of ``cogrid status``."""

    redis: dict[str, Any]
    workers: list[WorkerRow]
    queues: list[QueueRow]
    tasks: dict[str, int | None]
    reaper: dict[str, Any]
    warnings: list[str]

    @property
    def findings(self) -> bool:
        """Something needs the operator: a sick worker, a queue nobody serves, or a warning."""
        return (
            any(worker.health in SICK for worker in self.workers)
            or any(queue.servable is False for queue in self.queues)
            or bool(self.warnings)
        )


def status(store: Store, limits: Limits, only: Only = ALL) -> Status:
    """Read the grid and say how it is. only: NotFoundError where it names what is not there."""
    snapshot = store.read(read_snapshot(store.keys, tasks=True, waits=True, stray=True))
    if only != ALL:
        store.demand(FLEET)
    if only.worker:
        the_worker(snapshot, only.worker)
    if only.model:
        only = replace(only, model=the_model(snapshot, only.model))
    found = describe(snapshot, limits, store.shown, store.keys.prefix, store.unread)
    return found if only == ALL else narrowed(found, snapshot, only)


def narrowed(found: Status, snapshot: Snapshot, only: Only) -> Status:
    """The status with these workers and queues alone; counts and warnings stay those of the
    grid."""
    workers = {worker.id for worker in snapshot.workers if only.has_worker(worker)}
    queues = {queue.name for queue in snapshot.queues if only.has_queue(queue)}
    return replace(
        found,
        workers=[worker for worker in found.workers if worker.id in workers],
        queues=[queue for queue in found.queues if queue.name in queues],
    )


def describe(
    snapshot: Snapshot, limits: Limits, shown: str, prefix: str = "",
    unread: Collection[Part] = (),
) -> Status:  # fmt: skip
    """The status of a snapshot. shown: the server's address without its password. unread: what our
    user may not read, so that nothing is concluded from its absence."""
    grid = Grid.of(snapshot, limits)
    tasks = {task.id: task for task in snapshot.tasks}
    return Status(
        redis=_redis(snapshot.server, shown, prefix),
        workers=[_worker(worker, tasks, snapshot, limits, unread) for worker in _ordered(snapshot)],
        queues=[_queue(queue, grid, limits, unread) for queue in snapshot.queues],
        tasks=_counts(snapshot, unread),
        reaper=_reaper(snapshot, unread),
        warnings=_warnings(snapshot, limits, unread),
    )


def _ordered(snapshot: Snapshot) -> list[Worker]:
    return sorted(snapshot.workers, key=lambda worker: worker.id)


def _worker(
    worker: Worker, tasks: Mapping[TaskId, Task], snapshot: Snapshot, limits: Limits,
    unread: Collection[Part],
) -> WorkerRow:  # fmt: skip
    now_ms, hidden = snapshot.taken_at_ms, Part.WORKERS in unread
    found = (tasks.get(task) for task in worker.tasks)
    return WorkerRow(
        id=worker.id,
        health=health_word(worker, snapshot, limits, unread),
        state=UNKNOWN if hidden and not worker.known else worker.state,
        pool=worker.pool,
        host=worker.host,
        address=worker.address or None,
        slots=None if hidden and not worker.known else worker.slots,
        busy=None if hidden else worker.busy,
        models=[offer.name for offer in worker.offers],
        registered_at=worker.registered_at or None,
        beat_age_s=age_s(now_ms, worker.beat_at_ms),
        poll_age_s=age_s(now_ms, worker.polled_at_ms),
        tasks=list(worker.tasks),
        runs=[_run(task, now_ms) for task in found if task],
        engine=worker.engine,
        version=worker.version,
        loaded=[_loaded(offer) for offer in worker.offers if offer.loaded],
        report=worker.report,
    )


def _loaded(offer: Offer) -> LoadedRow:
    share = gpu_share(offer)
    return LoadedRow(offer.name, offer.size_bytes or None, offer.vram_bytes or None, share)


def gpu_share(offer: Offer) -> float | None:
    """The part of a loaded model that lies in the GPU's memory, 0 to 1."""
    if not offer.loaded or not offer.size_bytes:
        return None
    return round(min(1.0, offer.vram_bytes / offer.size_bytes), 2)


def _run(task: Task, now_ms: int) -> RunRow:
    return RunRow(task.id, task.model, task.user, age_s(now_ms, task.claimed_at_ms))


def _queue(queue: QueueDepth, grid: Grid, limits: Limits, unread: Collection[Part]) -> QueueRow:
    return QueueRow(
        queue.name,
        None if Part.QUEUED in unread else queue.depth,
        age_s(grid.snapshot.taken_at_ms, queue.oldest_ms),
        None if fleet_unknown(unread) else servable(queue, grid, limits),
    )


def _counts(snapshot: Snapshot, unread: Collection[Part]) -> dict[str, int | None]:
    """Tasks by state, null where one of the parts that the number is made of is hidden."""
    counted_from = {
        "pending": {Part.QUEUES, Part.QUEUED},
        "running": FLEET,
        "waiting": {*FLEET, Part.QUEUES, Part.QUEUED, Part.OPEN},
        "dead": {Part.DEAD},
    }
    return {
        state: None if set(unread) & counted_from.get(state, {Part.TOTALS}) else count
        for state, count in snapshot.counts.items()
    }


def servable(queue: QueueDepth, grid: Grid, limits: Limits) -> bool:
    """Whether what waits there is waiting for somebody: its worker is up, or its model has a home
    in any pool (the reaper moves it there)."""
    if queue.worker is None:
        return bool(grid.homes.get(queue.model or ""))
    owner = grid.workers.get(queue.worker)
    return owner is not None and is_up(owner, Moment.of(grid.snapshot, limits))


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


def _reaper(snapshot: Snapshot, unread: Collection[Part]) -> dict[str, Any]:
    if Part.REAPER in unread:
        return {"last_pass_age_s": None, "holding_s": None}
    held_ms = snapshot.reaper.hold_until_ms - snapshot.taken_at_ms
    return {
        "last_pass_age_s": age_s(snapshot.taken_at_ms, snapshot.reaper.last_pass_ms),
        "holding_s": round(held_ms / 1000, 1) if held_ms > 0 else None,
    }


def _warnings(snapshot: Snapshot, limits: Limits, unread: Collection[Part]) -> list[str]:
    said = [] if Part.FACTS in unread else _server_warnings(snapshot.server)
    said += [] if Part.REAPER in unread else _reaper_warnings(snapshot, limits)
    if snapshot.scan_cut:
        said.append("the search for left-over worker hashes was cut short after 10,000 keys")
    return said


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


def _reaper_warnings(snapshot: Snapshot, limits: Limits) -> list[str]:
    said = []
    silent_s = (snapshot.taken_at_ms - snapshot.reaper.last_pass_ms) / 1000
    if not snapshot.reaper.last_pass_ms and not snapshot.workers:
        said.append(
            "no reaper has ever run here: start a grid with cogrid up, or a reaper alone with "
            "cogrid reaper --daemon"
        )
    elif not snapshot.reaper.last_pass_ms:
        said.append("no reaper has ever run here: start one with cogrid reaper --daemon")
    elif silent_s > max(limits.pass_window_s, 3 * limits.tick_s):
        said.append(
            f"the reaper's last pass was {silent_s:.0f} s ago: start one with "
            "cogrid reaper --daemon"
        )
    return said
