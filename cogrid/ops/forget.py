"""A worker that is gone, or that is of no use, is struck off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cogrid.errors import ConflictError
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.ops.drain import LOOK_S, reaper_hint
from cogrid.ops.found import the_worker
from cogrid.ops.operator import operator
from cogrid.ops.trail import Went
from cogrid.rules.leaving import Leaving, least_silence_ms, leaving, may_forget
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from cogrid.store.workers import forget as strike_off


@dataclass(frozen=True, slots=True)
class Left:
    """What of it is still there. struck: its name and its process are void. over: nothing is left.
    hint: what it waits for that will not come by itself."""

    runs: int
    waiting: int
    struck: bool
    over: bool
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """plan: what the worker had. struck: its name and its process are void. done: nothing of it is
    left. tasks: what became of those that it had."""

    worker: str
    dry_run: bool
    force: bool
    by: str | None
    struck: bool
    done: bool
    plan: Leaving
    tasks: tuple[Went, ...] = ()


def plan_forget(store: Store, limits: Limits, name: str, force: bool) -> Leaving:
    """What it would mean. NotFoundError; ConflictError where it may not be done."""
    snapshot = _snapshot(store)
    worker = the_worker(snapshot, name)
    objection = may_forget(worker, snapshot, limits, force)
    if objection:
        raise ConflictError(objection.message, objection.hint)
    return leaving(worker, snapshot, limits)


def forget(
    store: Store, limits: Limits, gone: Leaving, force: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Left]:  # fmt: skip
    """Do it, look by look until nothing is left. Without force the tasks go first: a reaper moves
    them. It may be left at any time."""
    struck = False
    while True:
        snapshot = _snapshot(store)
        if not struck:
            struck = _strike_off(store, snapshot, limits, gone, force)
            snapshot = _snapshot(store)
        left = _left(snapshot, limits, gone, struck)
        yield left
        if left.over:
            return
        sleep(LOOK_S)


def _strike_off(
    store: Store, snapshot: Snapshot, limits: Limits, gone: Leaving, force: bool
) -> bool:
    worker = snapshot.worker(gone.worker)
    if worker is None:
        return True
    silence = least_silence_ms(worker, snapshot, limits)
    said = store.do(strike_off(store.keys, worker.id, force, operator(), silence))
    if said.status == "alive":
        raise ConflictError(f"{worker.id} is alive again", "nothing was done; look at it anew")
    if said.status == "works":
        raise ConflictError(f"{worker.id} is at work again", "nothing was done; look at it anew")
    return said.status in ("ok", "unknown")


def _left(snapshot: Snapshot, limits: Limits, gone: Leaving, struck: bool) -> Left:
    worker = snapshot.worker(gone.worker)
    if struck and worker and worker.known:  # another process has the name already
        return Left(0, 0, struck=True, over=True)
    runs = len(worker.tasks) if worker else 0
    waiting = snapshot.queue(gone.queue).depth
    over = struck and not runs and not waiting
    return Left(
        runs, waiting, struck, over, "" if over else reaper_hint(snapshot, limits, runs + waiting)
    )


def _snapshot(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False, stray=True))
