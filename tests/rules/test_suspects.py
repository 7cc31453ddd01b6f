"""Workers that renew and poll and are of no use all the same."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.event import Event
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.snapshot import ReaperMark
from cogrid.model.worker import OfferState, Wish, WorkerState
from cogrid.rules.suspects import suspects, twins
from tests.build import NOW_MS, a_snapshot, a_worker, an_offer

LIMITS = Limits()
FROZEN: dict[str, Any] = {
    "tasks": (TaskId("aa"),),
    "polled_at_ms": NOW_MS - 18_000,
    "claim_age_ms": 16_000,
}


def test_one_that_takes_and_never_produces() -> None:
    (found,) = suspects(a_snapshot(a_worker(zombies=3, host="h1")), LIMITS)
    assert (found.kind, found.subject, found.mend) == (
        "wedged", "esxi", "cogrid worker forget esxi --force",
    )  # fmt: skip
    assert found.evidence == (
        "host h1; its last 3 runs made no progress and were taken back; 0 of 1 slots taken"
    )
    assert found.at_risk == ("gemma3:1b",)


def test_one_that_does_not_let_go() -> None:
    worker = a_worker(revoked=(Token("t"),), revoked_at_ms=NOW_MS - 12_000)
    (found,) = suspects(a_snapshot(worker), LIMITS)
    assert "1 run taken back and not let go, the last one 12.0 s ago" in found.evidence


def test_a_frozen_claim_loop_behind_a_full_worker() -> None:
    (found,) = suspects(a_snapshot(a_worker(**FROZEN)), LIMITS)
    assert (found.kind, found.at_risk) == ("frozen_claims", ("aa",))
    assert found.evidence == (
        "host esxi; no claim for 18.0 s; renewed 2.0 s ago, when its claim loop had stood still "
        "for 16.0 s; 1 of 1 slots taken"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {**FROZEN, "polled_at_ms": NOW_MS - 4_000},
        {**FROZEN, "freed_at_ms": NOW_MS - 4_000},
        {**FROZEN, "tasks": ()},  # a ghost, and found as such
        {**FROZEN, "lease_until_ms": NOW_MS - 1},
        {**FROZEN, "state": WorkerState.AWAY},
        {},
    ],
)
def test_healthy_ghostly_and_dead_ones_are_none(fields: Any) -> None:
    assert suspects(a_snapshot(a_worker(**fields)), LIMITS) == ()


def test_nobody_is_frozen_while_the_reaper_holds_back() -> None:
    mark = ReaperMark(hold_until_ms=NOW_MS + 1)
    assert suspects(a_snapshot(a_worker(**FROZEN), reaper=mark), LIMITS) == ()


def test_one_that_polls_and_is_handed_nothing() -> None:
    failed = an_offer(state=OfferState.FAILED, reason="no memory")
    (found,) = suspects(a_snapshot(a_worker("esxi", failed)), LIMITS)
    assert found.kind == "excluded"
    assert found.what == (
        "esxi polls and is handed nothing: none of its models can be used (failed); put right on "
        "esxi what its engine says of them"
    )
    assert found.evidence == "host esxi; last poll 1.0 s ago; gemma3:1b failed: no memory"
    assert found.mend == ""


@pytest.mark.parametrize(
    ("fields", "advice", "mend"),
    [
        ({"slots": 0}, "start it on pve1 with one slot or more", ""),
        ({"offers": ()}, "give the engine on pve1 a model", ""),
        (
            {"offers": (an_offer(state=OfferState.MISSING),), "engine": "ollama 0.9.3"},
            "have it pull one of them",
            "cogrid model pull gemma3:1b --worker esxi",
        ),
        (
            {"offers": (an_offer(state=OfferState.MISSING),), "engine": "openai"},
            "put right on pve1 what its engine says of them",
            "",
        ),
    ],
)
def test_what_to_do_about_it(fields: Any, advice: str, mend: str) -> None:
    (found,) = suspects(a_snapshot(a_worker("esxi", host="pve1", **fields)), LIMITS)
    assert found.what.endswith(f"; {advice}")
    assert found.mend == mend


def test_a_drain_was_wanted() -> None:
    assert suspects(a_snapshot(a_worker(wish=Wish("drain"), offers=())), LIMITS) == ()


def test_the_worst_come_first() -> None:
    snapshot = a_snapshot(
        a_worker("a", offers=()), a_worker("b", **FROZEN), a_worker("c", zombies=3)
    )
    assert [each.kind for each in suspects(snapshot, LIMITS)] == [
        "wedged", "frozen_claims", "excluded"
    ]  # fmt: skip


def test_a_name_that_two_machines_want_is_told_once() -> None:
    reason = "name held by pve1, asked by pve2"
    refused = [Event(f"{n}-0", "refused", "", "esxi", f"i{n}", reason, n) for n in (1, 2, 3)]
    other = Event("4-0", "hello", "", "esxi", "i4", "pve1", 4)
    (found,) = twins([*refused, other])
    assert (found.kind, found.subject) == ("refused_twin", "esxi")
    assert found.what == (
        "host pve2 runs a worker under the name esxi, which pve1 holds; give it another name there"
    )
    assert found.evidence == f"refused 3 times of late; {reason}"
    assert found.mend == "cogrid worker run --id esxi-2"


def test_a_process_that_was_let_in_at_last_is_no_twin() -> None:
    """As that of a unit which waited for one that was started by hand to end."""
    reason = "name held by esxi, asked by esxi"
    refused = [Event(f"{n}-0", "refused", "", "esxi", "new", reason, n) for n in (1, 2)]
    let_in = Event("3-0", "hello", "", "esxi", "new", "esxi", 3)
    assert twins([*refused, let_in]) == twins([let_in, *reversed(refused)]) == ()
    again = [Event(f"{n}-0", "refused", "", "esxi", "new", reason, n) for n in (4, 5)]
    (found,) = twins([*refused, let_in, *again])
    assert found.evidence == f"refused 2 times of late; {reason}"


@pytest.mark.parametrize(("other", "count"), [("esxi", 0), ("pve2", 1)])
def test_one_that_was_replaced_on_its_own_host_asks_once_and_ends(other: str, count: int) -> None:
    reason = f"name held by esxi, asked by {other}"
    assert len(twins([Event("1-0", "refused", "", "esxi", "old", reason, 1)])) == count
