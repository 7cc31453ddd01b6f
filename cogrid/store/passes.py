"""What a pass of the reaper does; every act checks its own ground once more inside the script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.store.keys import Keys
from cogrid.store.script import Arg, Call, text

SCHEMA = 1
"""Version of what stands in Redis. A step from one to the next may only add fields and keys, so
that hosts can be brought up to date one after another."""
AHEAD = 1
"""So many steps ahead of its own a worker or a coordinator still works; a reaper does not, since it
would judge by what it cannot see."""
MODEL_KEEP_MS = 30 * 86_400_000


def ms(seconds: float) -> int:
    """Whole milliseconds."""
    return round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Began:
    """status: ok, held (nothing is ended before hold_until_ms) or newer (schema: of a newer
    cogrid). Times are Redis ms."""

    status: str
    now_ms: int = 0
    hold_until_ms: int = 0
    last_pass_ms: int = 0
    schema: int = 0


def begin_pass(keys: Keys, run_id: str, replication_id: str, limits: Limits) -> Call[Began]:
    """Begin a round under the server's run id."""
    args: tuple[Arg, ...] = (
        keys.prefix, run_id, replication_id, ms(limits.pass_window_s), ms(limits.lease_s), SCHEMA,
    )  # fmt: skip
    return Call("begin_pass", keys.reaper, args, _began)


def _began(reply: Any) -> Began:
    status = text(reply[0])
    if status == "newer":
        return Began(status, schema=int(reply[1]))
    return Began(status, int(reply[1]), int(reply[2]), int(reply[3]))


@dataclass(frozen=True, slots=True)
class Acted:
    """status: ok, requeued, failed, dead, postponed; or moved_on (it was no longer so) or held."""

    status: str
    reason: str = ""
    queue: str = ""


def _acted(reply: Any) -> Acted:
    parts = [text(part) for part in reply]
    return Acted(*parts[:3])


def reap(
    keys: Keys, task: TaskId, token: Token, queue: Queue, broken: str, spent: str,
    run_id: str, limits: Limits,
) -> Call[Acted]:  # fmt: skip
    """Take a run back. queue: where it should go. broken, spent: what its client is told if text
    was sent, or if its recoveries are used up."""
    args: tuple[Arg, ...] = (
        keys.prefix, task, token, queue, broken, spent, run_id, ms(limits.pass_window_s),
    )  # fmt: skip
    return Call("reap", keys.task(task), args, _acted)


def move(
    keys: Keys, task: TaskId, from_queue: Queue, to_queue: Queue, evidence: str,
    run_id: str, limits: Limits,
) -> Call[Acted]:  # fmt: skip
    """Move a waiting task. evidence goes into the event."""
    args: tuple[Arg, ...] = (
        keys.prefix, task, from_queue, to_queue, run_id, ms(limits.pass_window_s),
        ms(limits.ghost_after_s), ms(limits.start_timeout_s), ms(limits.own_queue_wait_s),
        ms(limits.pool_wait_s), evidence,
    )  # fmt: skip
    return Call("move", keys.task(task), args, _acted)


def promote(keys: Keys, task: TaskId, queue: Queue) -> Call[Acted]:
    """End a back-off."""
    return Call("promote", keys.task(task), (keys.prefix, task, queue), _promoted)


def _promoted(reply: Any) -> Acted:
    return Acted(text(reply[0]), queue=text(reply[1]) if len(reply) > 1 else "")


def expire(keys: Keys, task: TaskId, message: str, run_id: str, limits: Limits) -> Call[Acted]:
    """End a task that has waited for as long as it may."""
    args: tuple[Arg, ...] = (keys.prefix, task, message, run_id, ms(limits.pass_window_s))
    return Call("expire", keys.task(task), args, _acted)


def fail_homeless(
    keys: Keys, task: TaskId, message: str, run_id: str, limits: Limits
) -> Call[Acted]:
    """End a task whose model has had no home for a while."""
    args: tuple[Arg, ...] = (
        keys.prefix, task, message, ms(limits.home_grace_s), run_id, ms(limits.pass_window_s),
    )  # fmt: skip
    return Call("fail_homeless", keys.task(task), args, _acted)


def stamp_homes(keys: Keys, models: tuple[str, ...]) -> Call[int]:
    """These models have a home now."""
    return Call("stamp_homes", keys.models, (keys.prefix, MODEL_KEEP_MS, *models), int)


@dataclass(frozen=True, slots=True)
class Tended:
    """How many markers were armed, index entries dropped, ended tasks taken off the lists."""

    armed: int
    dropped: int
    purged: int


def tend(
    keys: Keys, queues: tuple[Queue, ...], stale: tuple[TaskId, ...] = (), most: int = 100
) -> Call[Tended]:
    """Look after markers and indexes. stale: ids in grid:due whose hash is gone or over."""
    args: tuple[Arg, ...] = (keys.prefix, most, len(queues), *queues, *stale)
    return Call("tend", keys.queues, args, lambda reply: Tended(*(int(part) for part in reply)))


def drop_queued(keys: Keys, queue: Queue, tasks: tuple[TaskId, ...]) -> Call[int]:
    """Drop entries of a queue that no hash confirms; how many there were."""
    return Call("drop", keys.queue(queue), (keys.prefix, queue, "", *tasks), int)


def drop_held(keys: Keys, worker: WorkerId, tasks: tuple[TaskId, ...]) -> Call[int]:
    """The same for what a worker is said to run."""
    return Call("drop", keys.worker_tasks(worker), (keys.prefix, "", worker, *tasks), int)
