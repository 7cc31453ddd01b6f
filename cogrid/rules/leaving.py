"""A worker that is to go: what hangs on it, and whether it may be struck off."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health, Worker, WorkerState
from cogrid.rules.grid import Grid
from cogrid.rules.health import health, is_dead
from cogrid.rules.moment import Moment


@dataclass(frozen=True, slots=True)
class Leaving:
    """runs: what it runs. waiting: how many tasks stand in its own queue. only_here: its models
    that nobody else could serve."""

    worker: WorkerId
    health: Health
    host: str
    runs: tuple[TaskId, ...]
    queue: Queue
    waiting: int
    only_here: tuple[str, ...]


def leaving(worker: Worker, snapshot: Snapshot, limits: Limits) -> Leaving:
    """What the grid has of this worker now."""
    homes = Grid.of(snapshot, limits).homes
    return Leaving(
        worker=worker.id,
        health=health(worker, Moment.of(snapshot, limits)),
        host=worker.host,
        runs=worker.tasks,
        queue=worker.queue,
        waiting=snapshot.queue(worker.queue).depth,
        only_here=tuple(
            offer.name
            for offer in worker.offers
            if not any(
                seat.capable and seat.worker.id != worker.id for seat in homes.get(offer.name, ())
            )
        ),
    )


@dataclass(frozen=True, slots=True)
class Objection:
    """Why it is not done, and what to do instead."""

    message: str
    hint: str


def may_forget(worker: Worker, snapshot: Snapshot, limits: Limits, force: bool) -> Objection | None:
    """None where the worker may be struck off: it is dead, or by force one that is of no use."""
    now_ms = snapshot.taken_at_ms
    name = shlex.quote(worker.id)
    if is_dead(worker, now_ms):
        return None
    if force and least_silence_ms(worker, snapshot, limits) <= silence_ms(worker, now_ms):
        return None
    lease_s = ((worker.lease_until_ms or 0) - now_ms) / 1000
    if worker.state is WorkerState.AWAY:
        return Objection(
            f"{worker.id} is away: it was told to end, its lease runs for another {lease_s:.1f} s",
            "it ends by itself: repeat this command when its lease is over",
        )
    if not force:
        return Objection(
            f"{worker.id} is alive: its lease runs for another {lease_s:.1f} s",
            f"stop it first (cogrid worker drain {name}); a ghost goes with --force",
        )
    return Objection(
        f"{worker.id} is at work: it claimed {silence_ms(worker, now_ms) / 1000:.1f} s ago",
        f"--force is for ghosts; use cogrid worker drain {name} and stop it on {worker.host}",
    )


def least_silence_ms(worker: Worker, snapshot: Snapshot, limits: Limits) -> int:
    """How long a living worker must not have claimed before force may strike it off. A wedged one
    claims, and is of no use all the same."""
    word = health(worker, Moment.of(snapshot, limits))
    return 0 if word is Health.WEDGED else round(limits.ghost_after_s * 1000)


def silence_ms(worker: Worker, now_ms: int) -> int:
    """How long ago it claimed, whether or not it was given anything."""
    return max(0, now_ms - worker.polled_at_ms)
