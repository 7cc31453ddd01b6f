"""Why tasks leave a queue, and when a model has no home any more."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.snapshot import ReaperMark
from cogrid.model.task import Reason
from cogrid.model.worker import OfferState, Worker, WorkerState
from cogrid.rules.grid import Grid
from cogrid.rules.leave import Leave, is_homeless, is_lost, why_homeless, why_leave
from cogrid.rules.routing import Routing
from tests.build import NOW_MS, a_queue, a_snapshot, a_worker, an_offer

MODEL = "gemma3:1b"
CPU = f"tasks:cpu:shared:{MODEL}"
LIMITS = Limits()
GHOST: dict[str, Any] = {"polled_at_ms": NOW_MS - 17_200, "freed_at_ms": 0, "registered_at": ""}
HELD = ReaperMark(hold_until_ms=NOW_MS + 1)
FREE = a_worker("ai-core", pool="gpu", slots=2)
FULL = a_worker("esxi", taken=1)


def leave(
    queue: str, *workers: Worker, routing: Routing | None = None, **more: Any
) -> Leave | None:
    depth = a_queue(queue)
    snapshot = a_snapshot(*workers, queues=(depth,), **more)
    return why_leave(depth, Grid.of(snapshot, LIMITS), routing or Routing(), LIMITS)


@pytest.mark.parametrize(
    ("worker", "reason", "evidence"),
    [
        (
            a_worker(lease_until_ms=NOW_MS - 500),
            Reason.DEAD_WORKER,
            "lease ran out 0.5 s ago",
        ),
        (a_worker(known=False), Reason.DEAD_WORKER, "its hash is gone"),
        (a_worker("other"), Reason.DEAD_WORKER, "no lease"),
        (a_worker(**GHOST), Reason.GHOST_PENDING, "slot free, no claim for 17.2 s"),
        (a_worker(state=WorkerState.AWAY), Reason.NOT_READY, "it is away"),
        (a_worker(state=WorkerState.DRAINING), Reason.NOT_READY, "it is draining"),
        (a_worker(state=WorkerState.STARTING), Reason.NOT_READY, "it is starting"),
        (
            a_worker(state=WorkerState.STARTING, hello_at_ms=NOW_MS - 301_000),
            Reason.GHOST_PENDING,
            "starting for 301 s",
        ),
        (a_worker(pool="gpu"), Reason.NOT_READY, "it is in pool gpu now"),
    ],
)
def test_an_own_queue_is_left_at_once(worker: Worker, reason: Reason, evidence: str) -> None:
    assert leave("tasks:cpu:esxi", worker) == Leave(reason, evidence)


@pytest.mark.parametrize(
    ("worker", "mark"),
    [
        (a_worker(), ReaperMark()),
        (FULL, ReaperMark()),
        (a_worker(lease_until_ms=NOW_MS - 500), HELD),
        (a_worker(**GHOST), HELD),
    ],
    ids=["idle", "full", "dead, but held", "ghost, but held"],
)
def test_an_own_queue_is_kept(worker: Worker, mark: ReaperMark) -> None:
    assert leave("tasks:cpu:esxi", worker, reaper=mark) is None


def test_a_full_worker_gives_as_many_as_others_have_slots() -> None:
    assert leave("tasks:cpu:esxi", FULL, FREE) == Leave(
        Reason.WORKER_FULL, "1 of 1 slots taken, others are free", 1.0, most=2, to_free=True
    )


def test_a_shared_queue_is_kept_where_a_slot_is_free_or_nowhere_is() -> None:
    assert leave(CPU, a_worker(), FREE) is None
    assert leave(CPU, FULL, a_worker("b", pool="gpu", taken=1)) is None
    assert leave(CPU, FULL, a_worker("b", "other", pool="gpu")) is None


def test_a_shared_queue_is_left_for_free_slots_of_another_open_pool() -> None:
    expected = Leave(Reason.BETTER_POOL, "no slot free in pool cpu", 2.0, most=2, to_free=True)
    assert leave(CPU, FULL, FREE) == expected
    assert leave(CPU, FULL, FREE, routing=Routing(closed=("gpu",))) is None


def test_a_shared_queue_without_a_home_in_its_pool_is_left_whole() -> None:
    busy = a_worker("b", pool="gpu", taken=1)
    assert leave(CPU, busy) == Leave(Reason.BETTER_POOL, "no home in pool cpu", 2.0)
    assert leave(CPU, busy, routing=Routing(closed=("gpu",))) is None


def lost(*workers: Worker, stamped_s: float = 8, **more: Any) -> bool:
    homes = {MODEL: NOW_MS - round(stamped_s * 1000)}
    snapshot = a_snapshot(*workers, model_homes=homes, **more)
    return is_lost(a_queue(CPU), Grid.of(snapshot, LIMITS), LIMITS)


def test_a_model_is_homeless_when_its_stamp_is_old() -> None:
    assert lost()
    assert not lost(stamped_s=6.9)
    assert not lost(a_worker())
    assert not lost(reaper=HELD)
    assert is_homeless("never", Grid.of(a_snapshot(), LIMITS), LIMITS)


def test_no_model_is_homeless_while_a_worker_has_yet_to_speak() -> None:
    deleted = a_worker("x", known=False, offers=())
    assert not lost(deleted)
    assert lost(a_worker("x", known=False, offers=(), lease_until_ms=NOW_MS - 1))
    fresh: dict[str, Any] = {"state": WorkerState.STARTING, "offers": ()}
    assert not lost(a_worker("x", **fresh, hello_at_ms=NOW_MS - 7_000))
    assert lost(a_worker("x", **fresh, hello_at_ms=NOW_MS - 7_001))


@pytest.mark.parametrize(
    ("worker", "expected"),
    [
        (a_worker(lease_until_ms=NOW_MS - 1), "dead_worker"),
        (a_worker(**GHOST), "ghost_pending"),
        (a_worker(state=WorkerState.DRAINING), "draining"),
        (a_worker("esxi", an_offer(state=OfferState.FAILED)), "failed"),
        (a_worker("esxi", an_offer(state=OfferState.MISSING)), "missing"),
        (a_worker("esxi", an_offer(state=OfferState.QUARANTINED, since_ms=1)), "quarantined"),
        (a_worker("esxi", "other"), "no_worker"),
    ],
)
def test_how_the_last_home_went(worker: Worker, expected: str) -> None:
    grid = Grid.of(a_snapshot(worker), LIMITS)
    assert str(why_homeless(MODEL, "", grid, LIMITS)) == expected


def test_the_home_that_was_there_last_gives_the_reason() -> None:
    older = a_worker("a", beat_at_ms=NOW_MS - 90_000, lease_until_ms=NOW_MS - 70_000)
    newer = a_worker("b", an_offer(state=OfferState.MISSING))
    assert why_homeless(MODEL, "", Grid.of(a_snapshot(older, newer), LIMITS), LIMITS) == "missing"


def test_a_forgotten_workers_tasks_remember_the_reason() -> None:
    grid = Grid.of(a_snapshot(), LIMITS)
    assert why_homeless(MODEL, "ghost_pending", grid, LIMITS) == "ghost_pending"
