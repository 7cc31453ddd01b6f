"""Dead, ghost, wedged, and the order of the words."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.worker import Health, OfferState, Worker, WorkerState
from cogrid.rules.health import (
    ghost_evidence,
    health,
    is_dead,
    is_ghost,
    is_wedged,
    registered_at_ms,
)
from cogrid.rules.moment import Moment
from tests.build import NOW_MS, a_worker, an_offer

LIMITS = Limits()
AT = Moment(NOW_MS, LIMITS)
SILENT: dict[str, Any] = {"polled_at_ms": NOW_MS - 17_200, "freed_at_ms": NOW_MS - 60_000}
NEVER: dict[str, Any] = {"polled_at_ms": 0, "freed_at_ms": NOW_MS - 17_200}
STARTING: dict[str, Any] = {"state": WorkerState.STARTING, "polled_at_ms": 0, "freed_at_ms": 0}
TASK = (TaskId("t1"),)
TOKEN = (Token("esxi-1:7:0"),)


@pytest.mark.parametrize(
    ("lease_until_ms", "dead"),
    [(None, True), (NOW_MS - 1, True), (NOW_MS, False), (NOW_MS + 1, False)],
)
def test_a_worker_is_dead_when_no_lease_speaks_for_it(
    lease_until_ms: int | None, dead: bool
) -> None:
    assert is_dead(a_worker(lease_until_ms=lease_until_ms), NOW_MS) is dead


@pytest.mark.parametrize(
    ("fields", "ghost"),
    [
        ({}, False),
        (SILENT, True),
        ({**SILENT, "polled_at_ms": NOW_MS - 15_000}, False),
        ({**SILENT, "polled_at_ms": NOW_MS - 15_001}, True),
        # A slot that has just become free excuses the old poll of a full worker.
        ({**SILENT, "freed_at_ms": NOW_MS - 10}, False),
        ({**SILENT, "registered_at": "2026-06-07T02:39:50Z"}, False),
        ({**SILENT, "registered_at": "2026-06-07 02:39:50"}, False),
        ({**SILENT, "registered_at": "2026-06-07T02:39:40Z"}, True),
        ({**SILENT, "registered_at": "rubbish"}, True),
        (NEVER, True),
        ({**SILENT, "tasks": TASK}, False),
        ({**SILENT, "tasks": TASK, "slots": 2}, True),
        ({**SILENT, "tasks": TASK, "revoked": TOKEN, "slots": 2}, False),
        ({**SILENT, "state": WorkerState.DRAINING}, False),
        ({**SILENT, "state": WorkerState.AWAY}, False),
        ({**SILENT, "lease_until_ms": NOW_MS - 1}, False),
        ({**SILENT, "known": False}, False),
        ({**STARTING, "hello_at_ms": NOW_MS - 299_999}, False),
        ({**STARTING, "hello_at_ms": NOW_MS - 300_001}, True),
        # Probing the models may take minutes: no poll is expected meanwhile.
        ({**STARTING, "hello_at_ms": NOW_MS - 60_000}, False),
    ],
)
def test_a_ghost_is_told_by_the_worker_alone(fields: dict[str, Any], ghost: bool) -> None:
    assert is_ghost(a_worker(**fields), AT) is ghost


def test_nobody_is_a_ghost_while_the_reaper_doubts_itself() -> None:
    worker = a_worker(**SILENT)
    assert not is_ghost(worker, Moment(NOW_MS, LIMITS, NOW_MS + 1))
    assert is_ghost(worker, Moment(NOW_MS, LIMITS, NOW_MS))


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        (SILENT, "slot free, no claim for 17.2 s"),
        (NEVER, "registered, never polled for 17.2 s"),
        ({**NEVER, "freed_at_ms": 0, "registered_at": ""}, "registered, never polled"),
        ({**STARTING, "hello_at_ms": NOW_MS - 312_000}, "starting for 312 s"),
        ({**STARTING, "hello_at_ms": 0}, "starting, never said hello"),
    ],
)
def test_the_evidence_is_in_numbers(fields: dict[str, Any], evidence: str) -> None:
    assert ghost_evidence(a_worker(**fields), NOW_MS) == evidence


@pytest.mark.parametrize(
    ("fields", "wedged"),
    [
        ({}, False),
        ({"revoked": TOKEN, "revoked_at_ms": NOW_MS - 10_000}, False),
        ({"revoked": TOKEN, "revoked_at_ms": NOW_MS - 10_001}, True),
        ({"revoked_at_ms": NOW_MS - 10_001}, False),
        ({"zombies": 2}, False),
        ({"zombies": 3}, True),
    ],
)
def test_a_wedged_worker_keeps_what_was_taken_from_it(fields: dict[str, Any], wedged: bool) -> None:
    assert is_wedged(a_worker(**fields), AT) is wedged


def everything_wrong() -> dict[str, Any]:
    """Fields that make each word apply at once; the order of the words must decide."""
    return {
        **SILENT,
        "lease_until_ms": None,
        "slots": 1,
        "zombies": 3,
        "offers": (an_offer(state=OfferState.QUARANTINED),),
    }


@pytest.mark.parametrize(
    ("worker", "word"),
    [
        (a_worker(**everything_wrong()), Health.DEAD),
        (a_worker(**{**everything_wrong(), "lease_until_ms": NOW_MS}), Health.GHOST),
        (a_worker(state=WorkerState.STARTING, zombies=3), Health.WEDGED),
        (
            a_worker("esxi", an_offer(state=OfferState.QUARANTINED), state=WorkerState.STARTING),
            Health.STARTING,
        ),
        (
            a_worker("esxi", an_offer(state=OfferState.QUARANTINED), state=WorkerState.DRAINING),
            Health.DRAINING,
        ),
        (
            a_worker("esxi", an_offer(state=OfferState.QUARANTINED), state=WorkerState.AWAY),
            Health.AWAY,
        ),
        (
            a_worker("esxi", an_offer(state=OfferState.QUARANTINED), tasks=TASK),
            Health.QUARANTINED,
        ),
        (
            a_worker("esxi", "a", an_offer("b", state=OfferState.QUARANTINED), tasks=TASK),
            Health.DEGRADED,
        ),
        (a_worker("esxi", "a", an_offer("b", state=OfferState.MISSING)), Health.DEGRADED),
        (a_worker("esxi", "a", an_offer("b", state=OfferState.FAILED)), Health.DEGRADED),
        (a_worker("esxi", "a", an_offer("b", state=OfferState.PROBING)), Health.HEALTHY),
        (a_worker(offers=()), Health.DEGRADED),
        (a_worker(pool="gpu"), Health.DEGRADED),
        (a_worker(pool="gpu", supports=("gpu_inference",)), Health.HEALTHY),
        (a_worker(pool="gpu", supports=()), Health.HEALTHY),
        (a_worker(tasks=TASK), Health.BUSY),
        (a_worker(tasks=TASK, slots=2), Health.HEALTHY),
        (a_worker(known=False, state=WorkerState.STARTING, offers=()), Health.STARTING),
    ],
)
def test_the_first_word_that_applies_is_the_one(worker: Worker, word: Health) -> None:
    assert health(worker, AT) is word


def test_a_hold_hides_the_ghost_but_nothing_else() -> None:
    assert health(a_worker(**SILENT), Moment(NOW_MS, LIMITS, NOW_MS + 1)) is Health.HEALTHY


def test_registered_at_is_read_as_utc() -> None:
    assert registered_at_ms(a_worker(registered_at="1970-01-01T00:00:02Z")) == 2000
    assert registered_at_ms(a_worker(registered_at="1970-01-01T00:00:02")) == 2000
    assert registered_at_ms(a_worker(registered_at="")) == 0
