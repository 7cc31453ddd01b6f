"""Where tasks go on: pools in order, free slots first, nobody twice."""

from __future__ import annotations

from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import WorkerId, shared_queue
from cogrid.model.task import Kind
from cogrid.model.worker import Offer, OfferState, Worker
from cogrid.rules.grid import Grid
from cogrid.rules.places import Places
from cogrid.rules.routing import Routing
from tests.build import a_queue, a_snapshot, a_task, a_worker, an_offer

MODEL = "gemma3:1b"
CPU, GPU = shared_queue("cpu", MODEL), shared_queue("gpu", MODEL)
ESXI = WorkerId("esxi")


def places(*workers: Worker, queues: dict[str, int] | None = None, **routing: Any) -> Places:
    depths = tuple(a_queue(name, depth) for name, depth in (queues or {}).items())
    grid = Grid.of(a_snapshot(*workers, queues=depths), Limits())
    return Places(grid, Routing(**routing))


def gpu(name: str = "ai-core", *models: str | Offer, **fields: Any) -> Worker:
    return a_worker(name, *models, pool="gpu", **fields)


def test_the_preferred_pool_with_a_free_slot() -> None:
    assert places(a_worker(), gpu()).shared(a_task()) == GPU
    assert places(a_worker(), gpu(), pools=("cpu", "gpu")).shared(a_task()) == CPU
    assert places(a_worker(), gpu(taken=1)).shared(a_task()) == CPU


def test_placements_fill_the_free_slots_and_then_share_the_wait() -> None:
    found = places(a_worker(slots=2), gpu(slots=1))
    queues = [found.shared(a_task(f"t{n}")) for n in range(9)]
    assert queues[:3] == [GPU, CPU, CPU]
    # Two slots in cpu, one in gpu: the wait is the same where cpu has twice as many.
    assert (queues.count(GPU), queues.count(CPU)) == (3, 6)


def test_without_a_home_the_pool_it_is_in() -> None:
    assert places().shared(a_task(queue="tasks:cpu:esxi")) == CPU


def test_a_closed_pool_keeps_only_its_own() -> None:
    found = places(a_worker(), gpu(), closed=("gpu",))
    assert found.shared(a_task()) == CPU
    assert found.shared(a_task(queue="tasks:gpu:esxi")) == GPU
    assert places(gpu(), closed=("gpu",)).own(a_task(), ESXI) == CPU


def test_another_home_but_never_the_avoided_one() -> None:
    found = places(a_worker(), gpu(), a_worker("third", taken=1))
    assert found.own(a_task(), WorkerId("ai-core")) == "tasks:cpu:esxi"
    assert found.own(a_task(), ESXI) == "tasks:gpu:ai-core"
    # ai-core and esxi have one each now; the third is full: the preferred pool's.
    assert found.own(a_task(), ESXI) == "tasks:gpu:ai-core"
    assert places(a_worker()).own(a_task(), ESXI) == CPU


def test_own_queues_are_filled_evenly() -> None:
    found = places(*(gpu(name, slots=2) for name in ("a", "b", "c")))
    queues = [found.own(a_task(f"t{n}"), ESXI) for n in range(12)]
    assert {queue: queues.count(queue) for queue in queues} == {
        "tasks:gpu:a": 4, "tasks:gpu:b": 4, "tasks:gpu:c": 4
    }  # fmt: skip


def test_only_to_a_slot_that_nothing_waits_for() -> None:
    full = a_worker(taken=1)
    own = a_task(queue="tasks:cpu:esxi")
    assert places(full, gpu()).to_free(own) == GPU
    assert places(full, gpu(), queues={GPU: 1}).to_free(own) is None
    assert places(full, gpu(), queues={"tasks:gpu:ai-core": 1}).to_free(own) is None
    assert places(full, gpu(taken=1)).to_free(own) is None
    assert places(full, a_worker("b")).to_free(own) == CPU


def test_a_slot_is_given_away_once() -> None:
    two = gpu("ai-core", MODEL, "other")
    found = places(a_worker("esxi", MODEL, "other", taken=1), two)
    assert found.to_free(a_task("a")) == GPU
    assert found.to_free(a_task("b")) is None
    other = a_task("c", model="other", queue="tasks:cpu:shared:other")
    assert found.to_free(other) is None


def test_a_shared_task_leaves_its_pool_or_stays() -> None:
    full = a_worker(taken=1)
    assert places(full, a_worker("b")).to_free(a_task()) is None
    assert places(full, gpu()).to_free(a_task()) == GPU


def test_a_task_that_runs_alone_wants_a_whole_worker() -> None:
    full, half = a_worker(taken=1), gpu(slots=2, taken=1)
    assert places(full, half).to_free(a_task()) == GPU
    assert places(full, half).to_free(a_task(solo=True)) is None


def test_only_where_the_task_can_be_done() -> None:
    seeing = a_worker("esxi", an_offer(supports=("chat", "vision")))
    found = places(seeing, gpu())
    assert found.shared(a_task()) == GPU
    assert found.shared(a_task(needs=("vision",))) == CPU
    assert found.homes(a_task(needs=("vision",))) == ("esxi",)
    # Nobody can: better any home than none.
    assert found.shared(a_task(kind=Kind.EMBED)) == GPU


def test_a_quarantined_home_is_the_last_choice() -> None:
    bad = gpu("ai-core", an_offer(state=OfferState.QUARANTINED))
    assert places(a_worker(), bad).shared(a_task()) == CPU
    assert places(a_worker(), bad).own(a_task(), ESXI) == CPU
