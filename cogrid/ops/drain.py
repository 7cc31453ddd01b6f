"""A worker finishes what it runs and takes no more; and takes work again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cogrid.errors import ConflictError
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health, Wish, Worker, WorkerState
from cogrid.ops.found import the_worker
from cogrid.ops.operator import operator
from cogrid.ops.times import iso
from cogrid.ops.trail import Went
from cogrid.rules.leaving import Leaving, leaving
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from cogrid.store.workers import wish

DRAIN, RUN = "drain", "run"
LOOK_S = 0.25
"""Seconds between two looks at a worker that is waited for."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where a drain stands. runs: what it still runs. waiting: in its own queue. over: both are
    none. hint: what it waits for that will not come by itself."""

    runs: int
    waiting: int
    over: bool
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A drain that was asked for. until: then the worker resumes by itself."""

    worker: str
    by: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Drained:
    """plan: what the worker had when it was asked. by, until: null in a dry run; until: then it
    resumes by itself, null for never. done: it runs nothing and nothing waits for it alone; null
    where that was not waited for. tasks: what became of those that it had."""

    worker: str
    dry_run: bool
    by: str | None
    until: str | None
    done: bool | None
    plan: Leaving
    tasks: tuple[Went, ...] = ()


@dataclass(frozen=True, slots=True)
class Resumed:
    """done: it is ready for work again; null where that was not waited for."""

    worker: str
    dry_run: bool
    health: str
    done: bool | None


def plan_drain(store: Store, limits: Limits, name: str) -> Leaving:
    """What a drain would mean. NotFoundError; ConflictError for a worker that is dead."""
    snapshot = _snapshot(store)
    worker = the_worker(snapshot, name)
    found = leaving(worker, snapshot, limits)
    if found.health is Health.DEAD:
        raise ConflictError(
            f"{worker.id} is dead, so there is nothing to drain",
            f"strike it off with cogrid worker forget {worker.id}",
        )
    return found


def drain(store: Store, name: str, for_s: float | None = None) -> Asked:
    """Ask for it. for_s: after so many seconds the worker resumes by itself, by Redis' clock."""
    by = operator()
    now_ms = _snapshot(store).taken_at_ms
    until_ms = now_ms + round(for_s * 1000) if for_s is not None else 0
    until = iso(until_ms)
    told = f"drain until {until} by {by}" if until else f"drain by {by}"
    _wish(store, name, Wish(DRAIN, until_ms, by), told)
    return Asked(name, by, until)


def plan_resume(store: Store, limits: Limits, name: str) -> Leaving:
    """The worker that would take work again. ConflictError for one that was not asked to stop."""
    snapshot = _snapshot(store)
    worker = the_worker(snapshot, name)
    if worker.wish.state != DRAIN:
        raise ConflictError(
            f"{worker.id} was not asked to drain: it is {worker.state.value}",
            f"cogrid worker why-idle {worker.id} says what keeps it from work",
        )
    return leaving(worker, snapshot, limits)


def resume(store: Store, name: str) -> None:
    """Ask it to take work again."""
    by = operator()
    _wish(store, name, Wish(RUN, 0, by), f"run by {by}")


def drained(
    store: Store, limits: Limits, name: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Step]:  # fmt: skip
    """How the drain gets on, look by look; the last step is over. It may be left at any time."""
    while True:
        snapshot = _snapshot(store)
        worker = snapshot.worker(name)
        step = _step(worker, snapshot, limits) if worker else Step(0, 0, over=True)
        yield step
        if step.over:
            return
        sleep(LOOK_S)


def resumed(
    store: Store, name: str, timeout_s: float,
    sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic,
) -> bool:  # fmt: skip
    """True once the worker has heard of it and is ready."""
    end_s = clock() + timeout_s
    while True:
        worker = _snapshot(store).worker(name)
        if worker and worker.state is WorkerState.READY and worker.wish.state != DRAIN:
            return True
        if clock() >= end_s:
            return False
        sleep(LOOK_S)


def _step(worker: Worker, snapshot: Snapshot, limits: Limits) -> Step:
    waiting = snapshot.queue(worker.queue).depth
    over = not worker.busy and not waiting
    return Step(worker.busy, waiting, over, "" if over else reaper_hint(snapshot, limits, waiting))


def reaper_hint(snapshot: Snapshot, limits: Limits, waiting: int) -> str:
    """What to do where tasks wait to be moved and no reaper is there to do it; else ""."""
    idle_ms = snapshot.taken_at_ms - snapshot.reaper.last_pass_ms
    if not waiting or idle_ms <= limits.pass_window_s * 1000:
        return ""
    return "no reaper is running, so nothing is moved: cogrid reaper --daemon, or --once"


def _wish(store: Store, name: str, wanted: Wish, told: str) -> None:
    worker = the_worker(_snapshot(store), name)
    if not store.do(wish(store.keys, worker.id, wanted, told)):
        raise ConflictError(
            f"{worker.id} has a lease and no hash, so it cannot be told anything",
            "it registers again within seconds; try again",
        )


def _snapshot(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False, stray=True))
