"""Striking off the dead, and ghosts by force."""

from __future__ import annotations

import pytest

from cogrid.errors import ConflictError
from cogrid.model.worker import WorkerState
from cogrid.ops.forget import Left, forget, plan_forget
from cogrid.ops.trail import Trail
from cogrid.store.tasks import Outcome, finish
from tests.ops.script import Meanwhile
from tests.reaper.stage import MODEL, Stage

OWN = "tasks:cpu:esxi"
GPU = f"tasks:gpu:shared:{MODEL}"


def a_ghost(stage: Stage) -> None:
    """It renews, and has not claimed for longer than a ghost may."""
    stage.let_pass(16)
    for name in ("esxi", "ai-core"):
        stage.renew(name)
    stage.poll("ai-core")


@pytest.fixture
def esxi(stage: Stage) -> Stage:
    """esxi has t1 in its own queue; ai-core is free and has the model too."""
    stage.worker("esxi", slots=2)
    stage.worker("ai-core", pool="gpu")
    stage.submit("t1", OWN)
    return stage


def test_one_that_is_at_work_stays(esxi: Stage) -> None:
    with pytest.raises(ConflictError, match="esxi is alive") as alive:
        plan_forget(esxi.store, esxi.limits, "esxi", force=False)
    assert "--force" in alive.value.hint
    with pytest.raises(ConflictError, match="esxi is at work") as at_work:
        plan_forget(esxi.store, esxi.limits, "esxi", force=True)
    assert "cogrid worker drain esxi" in at_work.value.hint


def test_one_that_has_ended_goes_when_its_lease_is_over(esxi: Stage) -> None:
    esxi.renew("esxi", WorkerState.AWAY)
    for force in (False, True):
        with pytest.raises(ConflictError, match=r"esxi is away: .* another \d+\.\d s") as away:
            plan_forget(esxi.store, esxi.limits, "esxi", force)
        assert away.value.hint == "it ends by itself: repeat this command when its lease is over"
    esxi.let_pass(21)
    assert plan_forget(esxi.store, esxi.limits, "esxi", force=False).health == "dead"


def test_the_dead_goes_when_its_tasks_have_gone(esxi: Stage) -> None:
    esxi.let_pass(21)
    esxi.worker("ai-core", pool="gpu")
    plan = plan_forget(esxi.store, esxi.limits, "esxi", force=False)
    assert (plan.health, plan.waiting) == ("dead", 1)
    trail = Trail(esxi.store, "esxi")
    lefts = list(forget(esxi.store, esxi.limits, plan, False, Meanwhile(esxi.sweep)))
    assert lefts == [Left(0, 1, False, False), Left(0, 0, True, True)]
    (t1,) = trail.went()
    assert (t1.how, t1.queue) == ("moved", GPU)
    assert esxi.redis.exists("worker:esxi") == 0
    assert esxi.redis.zscore("grid:workers", "esxi") is None


def test_a_ghost_goes_by_force_and_its_late_calls_are_refused(esxi: Stage) -> None:
    (run,) = esxi.claim("esxi", OWN)
    esxi.submit("t2", OWN)
    a_ghost(esxi)
    plan = plan_forget(esxi.store, esxi.limits, "esxi", force=True)
    assert (plan.health, plan.runs, plan.waiting) == ("ghost", ("t1",), 1)
    lefts = list(forget(esxi.store, esxi.limits, plan, True, Meanwhile(esxi.sweep)))
    assert lefts == [Left(1, 1, True, False), Left(0, 0, True, True)]
    assert esxi.task("t1")["queue"] == esxi.task("t2")["queue"] == GPU
    assert esxi.renew("esxi").status == "unknown"
    with pytest.raises(AssertionError):
        esxi.hello("esxi")
    late = finish(esxi.keys, plan.worker, run.id, run.token, Outcome("done", finish_reason="stop"))
    assert esxi.store.do(late).status == "lost"
    assert esxi.task("t1")["state"] == "pending"


def test_one_that_comes_back_in_between_is_left_alone(esxi: Stage) -> None:
    a_ghost(esxi)
    plan = plan_forget(esxi.store, esxi.limits, "esxi", force=True)
    esxi.poll("esxi")
    with pytest.raises(ConflictError, match="esxi is at work again"):
        next(forget(esxi.store, esxi.limits, plan, True))
    assert esxi.redis.exists("worker:esxi") == 1


def test_a_successor_ends_the_wait(esxi: Stage) -> None:
    a_ghost(esxi)
    plan = plan_forget(esxi.store, esxi.limits, "esxi", force=True)
    come = Meanwhile(lambda: esxi.hello("esxi", process=2))
    assert list(forget(esxi.store, esxi.limits, plan, True, come))[-1].over


def test_a_left_over_hash_is_struck_off(esxi: Stage) -> None:
    esxi.redis.hset("worker:old", mapping={"worker_id": "old", "pool": "cpu"})
    plan = plan_forget(esxi.store, esxi.limits, "old", force=False)
    assert [left.over for left in forget(esxi.store, esxi.limits, plan, False)] == [True]
    assert esxi.redis.exists("worker:old") == 0
