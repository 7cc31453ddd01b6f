"""Ghosts, dead workers that hold work, and hashes left over."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.snapshot import ReaperMark
from cogrid.rules.ghosts import ghosts
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker

LIMITS = Limits()
NEVER: dict[str, Any] = {
    "polled_at_ms": 0,
    "freed_at_ms": NOW_MS - 17_200,
    "registered_at": "2026-06-07T02:25:47Z",
    "host": "192.168.0.41",
}
TASK = (TaskId("cb305e3a"),)


def test_the_incidents_ghost() -> None:
    snapshot = a_snapshot(
        a_worker("esxi", "llama3.2:1b", "gemma3:1b", **NEVER),
        a_worker("ai-core", "llama3.2:1b"),
        queues=(a_queue("tasks:cpu:esxi", 1),),
    )
    (found,) = ghosts(snapshot, LIMITS)
    assert (found.kind, found.subject) == ("ghost_pending", "esxi")
    assert found.what == (
        "esxi is registered and renews its lease, but takes no work; start it again on"
        " 192.168.0.41, as a service that restarts"
    )
    assert found.evidence == (
        "registered, never polled for 17.2 s; host 192.168.0.41;"
        " registered_at 2026-06-07T02:25:47Z; never polled; holds 0 of 1 slots;"
        " 1 in tasks:cpu:esxi; nobody else serves gemma3:1b"
    )
    assert found.mend == "cogrid reaper --once"
    assert found.at_risk == ("gemma3:1b",)


def test_a_ghost_that_still_runs_something() -> None:
    worker = a_worker("esxi", slots=2, tasks=TASK, polled_at_ms=NOW_MS - 20_000)
    (found,) = ghosts(a_snapshot(worker, a_worker("ai-core")), LIMITS)
    assert found.evidence.startswith("slot free, no claim for 20.0 s; host esxi;")
    assert (
        "last poll 20.0 s ago; holds 1 of 2 slots (cb305e3a); 0 in tasks:cpu:esxi" in found.evidence
    )
    assert found.at_risk == ()
    assert found.mend == "cogrid worker drain esxi"


def test_a_ghost_that_nothing_waits_for_is_struck_off() -> None:
    (found,) = ghosts(a_snapshot(a_worker("esxi", **NEVER)), LIMITS)
    assert found.mend == "cogrid worker forget esxi --force"
    shared = a_queue("tasks:cpu:shared:gemma3:1b", 1)
    (found,) = ghosts(a_snapshot(a_worker("esxi", **NEVER), queues=(shared,)), LIMITS)
    assert found.mend == "cogrid reaper --once"


@pytest.mark.parametrize(
    "worker", [a_worker(), a_worker(tasks=TASK, polled_at_ms=1), a_worker(known=False)]
)
def test_healthy_busy_and_forgotten_hashes_are_none(worker: Any) -> None:
    assert ghosts(a_snapshot(worker), LIMITS) == ()


def test_nobody_is_accused_during_a_hold() -> None:
    held = a_snapshot(a_worker(**NEVER), reaper=ReaperMark(hold_until_ms=NOW_MS + 1))
    assert ghosts(held, LIMITS) == ()


@pytest.mark.parametrize(
    ("worker", "rest", "kind"),
    [
        ({"tasks": TASK}, {}, "dead_worker"),
        ({}, {"queues": (a_queue("tasks:cpu:esxi"),)}, "dead_worker"),
        ({}, {"queues": (a_queue("tasks:gpu:shared:gemma3:1b"),)}, "dead_worker"),
        (
            {},
            {"queues": (a_queue("tasks:cpu:nas"),), "tasks": (a_task(queue="tasks:cpu:nas"),)},
            "dead_worker",
        ),
        ({}, {"queues": (a_queue("tasks:gpu:shared:other"),)}, None),
        ({}, {}, None),
    ],
)
def test_the_dead_matter_while_they_hold_or_block_work(
    worker: dict[str, Any], rest: dict[str, Any], kind: str | None
) -> None:
    dead = a_worker("esxi", lease_until_ms=NOW_MS - 2_500, **worker)
    found = ghosts(a_snapshot(dead, **rest), LIMITS)
    assert [each.kind for each in found] == ([kind] if kind else [])
    if kind:
        assert found[0].evidence.startswith("lease over for 2.5 s;")
        assert found[0].mend == "cogrid reaper --once"


def test_work_that_others_can_do_is_not_blocked() -> None:
    dead = a_worker("esxi", lease_until_ms=NOW_MS - 2_500)
    queue = a_queue("tasks:cpu:shared:gemma3:1b")
    assert ghosts(a_snapshot(dead, a_worker("ai-core"), queues=(queue,)), LIMITS) == ()


def test_a_hash_without_a_lease() -> None:
    left = a_worker("esxi", **{**NEVER, "lease_until_ms": None})
    (found,) = ghosts(a_snapshot(left, a_worker("ai-core")), LIMITS)
    assert (found.kind, found.mend) == ("leftover_hash", "cogrid worker forget esxi")
    assert found.evidence.startswith(
        "a hash without a lease; host 192.168.0.41; registered_at 2026"
    )
    holding = a_worker("esxi", **{**NEVER, "lease_until_ms": None, "tasks": TASK})
    (found,) = ghosts(a_snapshot(holding), LIMITS)
    assert (found.kind, found.mend) == ("dead_worker", "cogrid reaper --once")


def test_ghosts_come_first() -> None:
    snapshot = a_snapshot(
        a_worker("a", lease_until_ms=None),
        a_worker("b", lease_until_ms=NOW_MS - 1, tasks=TASK),
        a_worker("c", **NEVER),
    )
    assert [each.subject for each in ghosts(snapshot, LIMITS)] == ["c", "b", "a"]
