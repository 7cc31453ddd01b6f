"""Homes and capable workers."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.snapshot import ReaperMark
from cogrid.model.worker import Offer, OfferState, WorkerState
from cogrid.rules.homes import (
    all_models,
    capable,
    homes,
    is_home,
    supports,
    why_no_home,
)
from cogrid.rules.moment import Moment
from tests.build import NOW_MS, a_snapshot, a_worker, an_offer

LIMITS = Limits()
AT = Moment(NOW_MS, LIMITS)
GHOST: dict[str, Any] = {"polled_at_ms": NOW_MS - 17_200}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"state": WorkerState.STARTING}, ""),
        ({"state": WorkerState.AWAY}, ""),
        ({"state": WorkerState.DRAINING}, "draining"),
        ({"lease_until_ms": NOW_MS - 1}, "dead"),
        ({"lease_until_ms": None}, "dead"),
        ({"known": False, "offers": ()}, "its hash is gone, it has to register again"),
        (GHOST, "ghost: slot free, no claim for 17.2 s"),
        (
            {"state": WorkerState.STARTING, "hello_at_ms": NOW_MS - 301_000},
            "ghost: starting for 301 s",
        ),
        ({"offers": (an_offer("llama3.2:1b"),)}, "does not have the model"),
    ],
)
def test_a_home_is_up(fields: dict[str, Any], why: str) -> None:
    worker = a_worker(**fields)
    assert why_no_home(worker, "gemma3:1b", AT) == why
    assert is_home(worker, "gemma3:1b", AT) is (why == "")


@pytest.mark.parametrize(
    ("offer", "why"),
    [
        (an_offer(state=OfferState.PROBING), ""),
        (an_offer(state=OfferState.MISSING), "model missing"),
        (an_offer(state=OfferState.FAILED, reason="out of memory"), "model failed: out of memory"),
        (an_offer(state=OfferState.QUARANTINED, since_ms=NOW_MS - 60_000), ""),
        (an_offer(state=OfferState.QUARANTINED, since_ms=0), ""),
        (
            an_offer(state=OfferState.QUARANTINED, since_ms=NOW_MS - 61_000, reason="reset"),
            "model in quarantine for 61 s: reset",
        ),
    ],
)
def test_a_home_has_the_model(offer: Offer, why: str) -> None:
    worker = a_worker("esxi", offer)
    assert why_no_home(worker, "gemma3:1b", AT) == why
    assert is_home(worker, "gemma3:1b", AT) is (why == "")


def test_a_hold_keeps_a_silent_worker_at_home() -> None:
    held = a_snapshot(a_worker(**GHOST), reaper=ReaperMark(hold_until_ms=NOW_MS + 1))
    assert [w.id for w in homes(held, "gemma3:1b", LIMITS)] == ["esxi"]
    assert homes(a_snapshot(a_worker(**GHOST)), "gemma3:1b", LIMITS) == ()


def test_capable_is_a_home_without_quarantine() -> None:
    resting = an_offer(state=OfferState.QUARANTINED, since_ms=NOW_MS - 1_000)
    snapshot = a_snapshot(a_worker("esxi", resting), a_worker("ai-core"))
    assert [w.id for w in homes(snapshot, "gemma3:1b", LIMITS)] == ["esxi", "ai-core"]
    assert [w.id for w in capable(snapshot, "gemma3:1b", LIMITS)] == ["ai-core"]


def test_models_of_the_grid() -> None:
    snapshot = a_snapshot(
        a_worker("esxi", "gemma3:1b", an_offer("b", state=OfferState.MISSING)),
        a_worker("gone", "c", lease_until_ms=None),
        model_homes={"d": NOW_MS - 1_000, "gemma3:1b": NOW_MS},
    )
    assert all_models(snapshot) == ("b", "c", "d", "gemma3:1b")


def test_supports_needs_all_of_it() -> None:
    offer = an_offer(supports=("chat", "vision"))
    assert supports(offer, ())
    assert supports(offer, ("vision",))
    assert not supports(offer, ("vision", "tools"))
