"""Who may take a waiting task from where it waits, and why each other worker cannot."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.task import Kind, State, Task
from cogrid.model.worker import OfferState, Wish, Worker, WorkerState
from cogrid.rules.grid import Grid
from cogrid.rules.takers import Taker, taker, takers
from tests.build import NOW_MS, a_snapshot, a_task, a_worker, an_offer

LIMITS = Limits()
OWN = "tasks:cpu:esxi"


def answer(worker: Worker, task: Task) -> Taker:
    return taker(worker, task, Grid.of(a_snapshot(worker), LIMITS), LIMITS)


def test_a_free_worker_of_the_pool_takes_it_now() -> None:
    assert answer(a_worker(), a_task()) == Taker(a_worker().id, True, True, "")


def test_a_full_worker_takes_it_later() -> None:
    full = a_worker(tasks=(TaskId("a"),))
    assert answer(full, a_task()) == Taker(full.id, True, False, "1 of 1 slots are taken")
    held = a_worker(slots=2, tasks=(TaskId("a"),), revoked=(Token("esxi-1:1:1"),))
    assert answer(held, a_task()).why == (
        "2 of 2 slots are taken, 1 by what was taken from it and not yet let go"
    )


def test_a_task_that_must_run_alone_waits_for_an_empty_worker() -> None:
    busy = a_worker(slots=4, tasks=(TaskId("a"),))
    found = answer(busy, a_task(solo=True))
    assert (found.takes, found.now) == (True, False)
    assert found.why == "the task must run alone, and 1 of 4 slots are taken"
    assert answer(a_worker(slots=4), a_task(solo=True)).now


@pytest.mark.parametrize(
    ("worker", "task", "why"),
    [
        ({"lease_until_ms": NOW_MS - 1}, {}, "dead"),
        ({"known": False}, {}, "its hash is gone, it has to register again"),
        ({"polled_at_ms": NOW_MS - 17_200}, {}, "ghost: slot free, no claim for 17.2 s"),
        ({"state": WorkerState.DRAINING}, {}, "draining"),
        ({"wish": Wish("drain", by="ada@home")}, {}, "asked to drain by ada@home"),
        ({"state": WorkerState.AWAY}, {}, "away"),
        ({"offers": ()}, {}, "does not have the model"),
        ({"pool": "gpu"}, {}, "it is in pool gpu, the task waits in cpu"),
        ({"id": "ai-core"}, {"queue": OWN}, "the task waits in esxi's own queue"),
        ({}, {"needs": ("vision",)}, "its gemma3:1b cannot see images"),
        ({}, {"kind": Kind.EMBED}, "its gemma3:1b cannot make embeddings"),
        (
            {"offers": (an_offer(supports=("embed",)),)},
            {},
            "its gemma3:1b cannot chat, it only makes embeddings",
        ),
        ({"offers": (an_offer(state=OfferState.PROBING),)}, {}, "model is being probed"),
        (
            {
                "offers": (
                    an_offer(state=OfferState.QUARANTINED, since_ms=NOW_MS - 9_000, reason="500"),
                )
            },
            {},
            "model in quarantine for 9 s: 500",
        ),
        (
            {"offers": (an_offer(state=OfferState.FAILED, reason="no memory"),)},
            {},
            "model failed: no memory",
        ),
    ],
)
def test_why_a_worker_never_takes_it(worker: Any, task: Any, why: str) -> None:
    fields = dict(worker)
    made = a_worker(fields.pop("id", "esxi"), **fields)
    assert answer(made, a_task(**task)) == Taker(made.id, False, False, why)


def test_its_own_queue_is_its_own_and_a_back_off_waits_nowhere() -> None:
    assert answer(a_worker(), a_task(queue=OWN)).takes
    assert answer(a_worker(pool="gpu"), a_task(state=State.WAITING)).takes


def test_every_worker_answers_in_the_order_of_the_snapshot() -> None:
    snapshot = a_snapshot(a_worker("b"), a_worker("a", "other"))
    found = takers(a_task(), Grid.of(snapshot, LIMITS), LIMITS)
    assert [(each.worker, each.takes) for each in found] == [("b", True), ("a", False)]


def chore(**fields: Any) -> Task:
    """A pull that waits for esxi, of a model that nobody has."""
    return a_task(kind=Kind.PULL, model="llama3.2:1b", queue=OWN, **fields)


def test_a_chore_is_one_workers_whatever_it_runs_and_has() -> None:
    full = a_worker(tasks=(TaskId("a"),))
    assert answer(full, chore()) == Taker(full.id, True, True, "")
    draining = a_worker(state=WorkerState.DRAINING, wish=Wish("drain"))
    assert answer(draining, chore()).now
    other = a_worker("ai-core", "llama3.2:1b")
    assert answer(other, chore()) == Taker(other.id, False, False, "it is asked of esxi alone")
    running = chore(state=State.RUNNING, worker="esxi")
    assert answer(other, running).why == "it is asked of esxi alone"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"lease_until_ms": NOW_MS - 1}, "dead"),
        ({"polled_at_ms": NOW_MS - 20_000}, "ghost: slot free, no claim for 20.0 s"),
        ({"state": WorkerState.AWAY}, "away"),
        ({"state": WorkerState.STARTING}, "starting"),
    ],
)
def test_a_chore_waits_for_a_worker_that_listens(fields: dict[str, Any], why: str) -> None:
    assert answer(a_worker(**fields), chore()).why == why
