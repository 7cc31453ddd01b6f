"""Let in, or refused with a status that says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.snapshot import Server, Snapshot
from cogrid.model.task import Band
from cogrid.model.worker import WorkerState
from cogrid.rules.admission import Admitted, Refused, admit
from cogrid.rules.grid import Grid
from cogrid.rules.route import Ask, NoRoute, NoRouteKind, Route, Routing, route
from tests.build import NOW_MS, a_queue, a_snapshot, a_worker

LIMITS = Limits()
QUEUE = "tasks:cpu:shared:gemma3:1b"
GRID = a_snapshot(a_worker())


def a_route(**fields: Any) -> Route:
    found = route(Ask("gemma3:1b"), GRID, Routing(), LIMITS)
    assert isinstance(found, Route)
    return replace(found, **fields)


def refusal(
    routed: Route | NoRoute,
    snapshot: Snapshot | Grid = GRID,
    body_bytes: int = 100,
    grid_age_s: float = 3600,
) -> Refused:
    found = admit(routed, snapshot, LIMITS, body_bytes, grid_age_s)
    assert isinstance(found, Refused), found
    return found


@pytest.mark.parametrize(
    ("band", "timeout_s"), [(Band.INTERACTIVE, 300.0), (Band.BACKGROUND, None), (Band.BATCH, None)]
)
def test_let_in(band: Band, timeout_s: float | None) -> None:
    routed = a_route(band=band)
    assert admit(routed, GRID, LIMITS, 100, 3600) == Admitted(routed, timeout_s)


def test_a_body_has_a_limit() -> None:
    most = LIMITS.body_max_bytes
    assert isinstance(admit(a_route(), GRID, LIMITS, most, 3600), Admitted)
    found = refusal(a_route(), body_bytes=most + 1)
    assert (found.status, found.code, found.retry_after_s) == (413, "body_too_large", 0)
    assert str(most + 1) in found.message


def test_a_model_may_be_that_of_a_worker_that_has_just_come() -> None:
    none = NoRoute(NoRouteKind.UNKNOWN_MODEL, "model 'x' is not known to this grid")
    new = a_worker("new", offers=(), state=WorkerState.STARTING, hello_at_ms=NOW_MS - 2_000)
    found = refusal(none, a_snapshot(a_worker(), new))
    assert (found.status, found.code, found.retry_after_s) == (503, "grid_starting", 5)
    assert "new has just come" in found.message
    slow = replace(new, hello_at_ms=NOW_MS - 8_000)
    assert refusal(none, a_snapshot(a_worker(), slow)).status == 404
    gone = replace(new, lease_until_ms=NOW_MS - 1)
    assert refusal(none, a_snapshot(a_worker(), gone)).status == 404


def test_a_model_that_was_never_here() -> None:
    none = NoRoute(NoRouteKind.UNKNOWN_MODEL, "model 'x' is not known to this grid", ("x1", "x2"))
    found = refusal(none)
    assert (found.status, found.code, found.retry_after_s) == (404, "model_not_found", 0)
    assert found.message == "model 'x' is not known to this grid; did you mean 'x1' or 'x2'?"
    assert refusal(replace(none, near=())).message == none.message


def test_what_no_model_can_do() -> None:
    found = refusal(NoRoute(NoRouteKind.BAD_REQUEST, "model 'x' cannot see images"))
    assert (found.status, found.code, found.message) == (
        400,
        "bad_request",
        "model 'x' cannot see images",
    )


def test_a_model_that_lost_its_home() -> None:
    found = refusal(NoRoute(NoRouteKind.NO_HOME, "no worker can serve model 'x' now"))
    assert (found.status, found.code, found.retry_after_s) == (503, "no_home", 10)


@pytest.mark.parametrize("kind", [NoRouteKind.UNKNOWN_MODEL, NoRouteKind.NO_HOME])
def test_a_grid_that_has_just_started_knows_nothing_yet(kind: NoRouteKind) -> None:
    none = NoRoute(kind, "model 'x' is not known to this grid")
    found = refusal(none, a_snapshot(), grid_age_s=12.5)
    assert (found.status, found.code, found.retry_after_s) == (503, "grid_starting", 8)
    assert refusal(none, a_snapshot(), grid_age_s=20).code != "grid_starting"
    assert refusal(none, GRID, grid_age_s=1).code != "grid_starting"


def test_a_queue_has_a_limit() -> None:
    full = a_snapshot(a_worker(), queues=(a_queue(QUEUE, 1000, gap_s=2.5),))
    found = refusal(a_route(), full)
    assert (found.status, found.code, found.retry_after_s) == (429, "queue_full", 3)
    assert found == refusal(a_route(), Grid.of(full, LIMITS))
    nearly = a_snapshot(a_worker(), queues=(a_queue(QUEUE, 999),))
    assert isinstance(admit(a_route(), nearly, LIMITS, 100, 3600), Admitted)


def test_a_wait_beyond_the_queue_limit() -> None:
    found = refusal(a_route(expected_wait_s=312.2))
    assert (found.status, found.code, found.retry_after_s) == (429, "queue_wait", 13)
    assert "about 312 s, the limit is 300 s" in found.message
    assert isinstance(admit(a_route(expected_wait_s=300), GRID, LIMITS, 100, 3600), Admitted)
    batch = a_route(expected_wait_s=9999, band=Band.BATCH)
    assert isinstance(admit(batch, GRID, LIMITS, 100, 3600), Admitted)


@pytest.mark.parametrize(
    ("maxmemory_bytes", "queued_bytes", "let_in"),
    [
        (0, 1024**3 - 100, True),
        (0, 1024**3 - 99, False),
        (4000, 900, True),
        (4000, 901, False),
    ],
)
def test_waiting_bodies_leave_room(maxmemory_bytes: int, queued_bytes: int, let_in: bool) -> None:
    server = Server(maxmemory_bytes=maxmemory_bytes)
    snapshot = a_snapshot(a_worker(), server=server, queued_bytes=queued_bytes)
    found = admit(a_route(), snapshot, LIMITS, 100, 3600)
    assert isinstance(found, Admitted) is let_in
    if isinstance(found, Refused):
        assert (found.status, found.code, found.retry_after_s) == (503, "memory_full", 10)


def test_a_request_is_never_let_in_to_wait_for_nothing() -> None:
    gone = a_snapshot(a_worker(lease_until_ms=None), model_homes={"gemma3:1b": NOW_MS - 60_000})
    routed = route(Ask("gemma3:1b"), gone, Routing(), LIMITS)
    assert refusal(routed, gone).status == 503
