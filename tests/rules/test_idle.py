"""Why a worker has nothing to do."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId, Token
from cogrid.model.task import Task
from cogrid.model.worker import OfferState, Wish, Worker, WorkerState
from cogrid.rules.grid import Grid
from cogrid.rules.idle import Blocked, Idle, why_excluded, why_idle
from cogrid.rules.routing import Routing
from tests.build import NOW_MS, a_queue, a_snapshot, a_task, a_worker, an_offer

LIMITS = Limits()
SHARED = Queue("tasks:cpu:shared:gemma3:1b")
GPU = Queue("tasks:gpu:shared:gemma3:1b")


def ask(worker: Worker, *heads: Task, depth: int = 1, routing: Routing | None = None) -> Idle:
    queues = tuple(a_queue(task.queue, depth) for task in heads)
    grid = Grid.of(a_snapshot(worker, queues=queues), LIMITS)
    waiting = {task.queue: (task,) for task in heads}
    return why_idle(worker, waiting, grid, routing or Routing(), LIMITS)


def test_nothing_waits() -> None:
    found = ask(a_worker())
    assert found.what == "esxi is idle because nothing waits anywhere"
    assert (found.wrong, found.mend, found.takes, found.blocked) == (False, "", (), ())


def test_what_it_is_about_to_take() -> None:
    found = ask(a_worker(), a_task())
    assert found.what == f"esxi takes from {SHARED} at its next claim"
    assert found.takes == (SHARED,)


def test_what_waits_is_not_for_it() -> None:
    found = ask(a_worker(), a_task("aa", queue=GPU), depth=3)
    assert found.what == "esxi is idle: 3 tasks waiting, none of them for it"
    why = "it is in pool cpu, the task waits in gpu"
    assert found.blocked == (Blocked(GPU, TaskId("aa"), "gemma3:1b", 3, why),)


def test_a_full_worker_is_not_idle() -> None:
    let_go: dict[str, Any] = {"revoked": (Token("esxi-1:1:1"),), "revoked_at_ms": NOW_MS - 1_000}
    found = ask(a_worker(slots=2, tasks=(TaskId("a"),), **let_go))
    assert found.what == (
        "esxi is not idle: 2 of 2 slots are taken, 1 by what was taken from it and not yet let go"
    )
    assert not found.wrong


@pytest.mark.parametrize(
    ("fields", "what", "mend"),
    [
        (
            {"lease_until_ms": NOW_MS - 4_000},
            "esxi is dead: lease ran out 4.0 s ago",
            "cogrid worker forget esxi",
        ),
        (
            {"polled_at_ms": 0, "freed_at_ms": NOW_MS - 20_000},
            "esxi is a ghost: registered, never polled for 20.0 s",
            "cogrid worker forget esxi --force",
        ),
        (
            {"offers": (an_offer(state=OfferState.FAILED, reason="no memory"),)},
            "esxi is handed nothing: none of its models can be used (failed)",
            "cogrid worker show esxi",
        ),
        ({"offers": ()}, "esxi is handed nothing: it offers no model", "cogrid worker show esxi"),
        ({"slots": 0}, "esxi is handed nothing: it has no slots", "cogrid worker show esxi"),
        (
            {"zombies": 3},
            "esxi is wedged: its last 3 runs made no progress and were taken back",
            "cogrid worker forget esxi --force",
        ),
    ],
)
def test_what_is_wrong_has_a_mend(fields: Any, what: str, mend: str) -> None:
    found = ask(a_worker(**{"offers": (an_offer(),), **fields}))
    assert (found.what, found.wrong, found.mend) == (what, True, mend)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"state": WorkerState.DRAINING}, "it is draining"),
        ({"wish": Wish("drain", by="ada@home")}, "it was asked to drain by ada@home"),
        ({"state": WorkerState.AWAY}, "it is away"),
        (
            {"offers": (an_offer(state=OfferState.PROBING),)},
            "none of its models can be used (probing)",
        ),
    ],
)
def test_what_somebody_wanted_or_passes_is_not_wrong(fields: Any, what: str) -> None:
    found = ask(a_worker(**fields))
    assert found.what == f"esxi is handed nothing: {what}"
    assert (found.wrong, found.mend) == (False, "")


def test_reasons_name_models_and_a_closed_pool() -> None:
    worker = a_worker("esxi", "a", an_offer("b", state=OfferState.FAILED, reason="no memory"))
    found = ask(worker, routing=Routing(closed=("cpu",)))
    assert found.reasons == (
        "model b failed: no memory",
        "its pool cpu is closed: it gets only what asks for it by name",
    )
    assert not found.wrong


def test_a_dead_worker_is_excluded_by_no_rule() -> None:
    assert why_excluded(a_worker(lease_until_ms=None, offers=()), NOW_MS, LIMITS) == ""
