"""Whether a request is let in: before any header, and never to wait for nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import Queue
from cogrid.model.snapshot import Server, Snapshot
from cogrid.model.task import Band
from cogrid.rules.grid import Grid
from cogrid.rules.leave import is_mute
from cogrid.rules.moment import Moment
from cogrid.rules.request import NoRoute, NoRouteKind, Route

QUEUED_SHARE = 0.25
"""Queued bodies may fill this share of the server's memory; the rest is for answers and events."""

MEMORY_BYTES = 4 * 1024**3
"""What a server without ``maxmemory`` is taken to have."""

HOME_RETRY_S = 10
"""A worker's unit restarts it after 10 s, so that is when a lost home may be back."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """queue_timeout_s: how long the task may be pending, None: for ever (background, batch)."""

    route: Route
    queue_timeout_s: float | None


@dataclass(frozen=True, slots=True)
class Refused:
    """An HTTP status, a code for programs, a sentence for people. retry_after_s: seconds, 0: no
    use in trying again."""

    status: int
    code: str
    message: str
    retry_after_s: int = 0


def admit(
    routed: Route | NoRoute,
    snapshot: Snapshot | Grid,
    limits: Limits,
    body_bytes: int,
    grid_age_s: float,
) -> Admitted | Refused:
    """grid_age_s: seconds since this coordinator started to see the grid; workers need up to a
    lease to be seen again."""
    read = snapshot.snapshot if isinstance(snapshot, Grid) else snapshot
    if body_bytes > limits.body_max_bytes:
        return _too_large(body_bytes, limits)
    if isinstance(routed, NoRoute):
        return _nowhere(routed, read, limits, grid_age_s)
    return (
        _queue_full(routed, snapshot, limits)
        or _wait_too_long(routed, limits)
        or _memory_full(read, body_bytes)
        or Admitted(routed, queue_timeout_s(routed.band, limits))
    )


def queue_timeout_s(band: Band, limits: Limits) -> float | None:
    """How long a task of the band may be pending; None: for ever."""
    return limits.queue_timeout_s if band is Band.INTERACTIVE else None


def _too_large(body_bytes: int, limits: Limits) -> Refused:
    most = limits.body_max_bytes
    message = f"the request has {body_bytes} bytes, the limit is {most} (limits.body_max_bytes)"
    return Refused(413, "body_too_large", message)


def _nowhere(no_route: NoRoute, snapshot: Snapshot, limits: Limits, grid_age_s: float) -> Refused:
    if no_route.kind is NoRouteKind.BAD_REQUEST:
        return Refused(400, "bad_request", no_route.message)
    if not snapshot.workers and grid_age_s < limits.lease_s:
        message = f"{no_route.message}: the grid has just started and no worker is here yet"
        return Refused(503, "grid_starting", message, _whole(limits.lease_s - grid_age_s))
    if no_route.kind is NoRouteKind.UNKNOWN_WORKER:
        return Refused(404, "worker_not_found", f"{no_route.message}{_meant(no_route)}")
    if no_route.kind is NoRouteKind.UNKNOWN_MODEL:
        at = Moment.of(snapshot, limits)
        mute = (worker.id for worker in snapshot.workers if is_mute(worker, at))
        if worker := next(mute, ""):
            message = f"{no_route.message}, but {worker} has just come and not yet told its models"
            return Refused(503, "grid_starting", message, _whole(limits.renew_s))
        return Refused(404, "model_not_found", f"{no_route.message}{_meant(no_route)}")
    return Refused(503, "no_home", no_route.message, HOME_RETRY_S)


def _meant(no_route: NoRoute) -> str:
    near = " or ".join(f"'{name}'" for name in no_route.near)
    return f"; did you mean {near}?" if near else ""


def _queue_full(route: Route, snapshot: Snapshot | Grid, limits: Limits) -> Refused | None:
    queue = snapshot.queue(Queue(route.queue))
    if queue.depth < limits.queue_max:
        return None
    message = f"queue {route.queue} is full: {queue.depth} tasks wait for model '{route.model}'"
    return Refused(429, "queue_full", message, _whole(queue.gap_s))


def _wait_too_long(route: Route, limits: Limits) -> Refused | None:
    most_s = queue_timeout_s(route.band, limits)
    if most_s is None or route.expected_wait_s <= most_s:
        return None
    message = (
        f"model '{route.model}' is busy: the wait in {route.queue} would be about"
        f" {route.expected_wait_s:.0f} s, the limit is {most_s:.0f} s"
    )
    return Refused(429, "queue_wait", message, _whole(route.expected_wait_s - most_s))


def queued_bytes_max(server: Server) -> int:
    """How many bytes of bodies may be queued on this server."""
    return int((server.maxmemory_bytes or MEMORY_BYTES) * QUEUED_SHARE)


def _memory_full(snapshot: Snapshot, body_bytes: int) -> Refused | None:
    most = queued_bytes_max(snapshot.server)
    if snapshot.queued_bytes + body_bytes <= most:
        return None
    message = (
        f"the grid holds {snapshot.queued_bytes} bytes of waiting requests, with this one more"
        f" than the {most} that its server has room for"
    )
    return Refused(503, "memory_full", message, HOME_RETRY_S)


def _whole(seconds: float) -> int:
    return max(1, math.ceil(seconds))
