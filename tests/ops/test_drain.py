"""Draining, and taking work again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cogrid.errors import ConflictError, NotFoundError
from cogrid.model.worker import WorkerState
from cogrid.ops.drain import Step, drain, drained, plan_drain, plan_resume, resume, resumed
from cogrid.ops.trail import Trail, Went
from tests.ops.script import Meanwhile
from tests.reaper.stage import MODEL, Stage

OWN = "tasks:cpu:esxi"
GPU = f"tasks:gpu:shared:{MODEL}"


@pytest.fixture
def esxi(stage: Stage) -> Stage:
    """esxi runs t1 and has t2 in its own queue; ai-core is free and has the model too."""
    stage.worker("esxi", MODEL, "only:1b")
    stage.worker("ai-core", pool="gpu")
    stage.submit("t1", OWN)
    stage.submit("t2", OWN)
    return stage


def test_the_plan_says_what_hangs_on_it(esxi: Stage) -> None:
    (run,) = esxi.claim("esxi", OWN)
    plan = plan_drain(esxi.store, esxi.limits, "esxi")
    assert (plan.runs, plan.waiting, plan.queue) == ((run.id,), 1, OWN)
    assert plan.only_here == ("only:1b",)
    assert plan.health == "busy"
    assert esxi.redis.hget("worker:esxi", "wanted") is None


def test_what_runs_is_finished_and_what_waits_is_moved(esxi: Stage) -> None:
    (run,) = esxi.claim("esxi", OWN)
    trail = Trail(esxi.store, "esxi")
    assert drain(esxi.store, "esxi").until is None
    meanwhile = Meanwhile(esxi.sweep, lambda: esxi.finish("esxi", run))
    steps = list(drained(esxi.store, esxi.limits, "esxi", meanwhile))
    assert steps == [Step(1, 1, False), Step(1, 0, False), Step(0, 0, True)]
    t2, t1 = trail.went()
    assert t1 == Went("t1", "done", None, "done", OWN, "esxi")
    assert (t2.task, t2.how, t2.state, t2.queue, t2.worker) == ("t2", "moved", "pending", GPU, None)
    assert (t2.reason or "").startswith("not_ready ")
    esxi.claim("ai-core", GPU)
    assert trail.went()[0].worker == "ai-core"


def test_it_takes_no_more_from_the_wish_on(esxi: Stage) -> None:
    drain(esxi.store, "esxi")
    assert esxi.claim("esxi", OWN) == ()


def test_without_a_reaper_it_says_what_is_missing(esxi: Stage) -> None:
    esxi.redis.hset("grid:reaper", "last_pass", 1)
    drain(esxi.store, "esxi")
    step = next(drained(esxi.store, esxi.limits, "esxi"))
    assert "cogrid reaper" in step.hint


def test_until_is_by_the_servers_clock_and_told(esxi: Stage) -> None:
    asked = drain(esxi.store, "esxi", for_s=3600)
    seconds, micros = esxi.redis.time()
    wish = esxi.renew("esxi").wish
    assert wish.state == "drain"
    assert wish.until_ms == pytest.approx(seconds * 1000 + micros // 1000 + 3_600_000, abs=5_000)
    assert asked.until is not None
    until = datetime.fromisoformat(asked.until).astimezone(UTC)
    assert until.timestamp() * 1000 == pytest.approx(wish.until_ms, abs=1)
    (event,) = [e for _, e in esxi.redis.xrange("grid:events") if e[b"edge"] == b"wish"]
    assert event[b"reason"].decode() == f"drain until {asked.until} by {asked.by}"
    assert "@" in asked.by


def test_the_dead_and_the_unknown_cannot_be_drained(esxi: Stage) -> None:
    with pytest.raises(NotFoundError, match="there is no worker 'esx'") as missing:
        plan_drain(esxi.store, esxi.limits, "esx")
    assert "esxi" in missing.value.hint
    esxi.let_pass(21)
    with pytest.raises(ConflictError, match="esxi is dead") as dead:
        plan_drain(esxi.store, esxi.limits, "esxi")
    assert "cogrid worker forget esxi" in dead.value.hint


def test_a_drained_worker_resumes(esxi: Stage) -> None:
    with pytest.raises(ConflictError, match="was not asked to drain"):
        plan_resume(esxi.store, esxi.limits, "esxi")
    drain(esxi.store, "esxi")
    esxi.renew("esxi", WorkerState.DRAINING)
    assert plan_resume(esxi.store, esxi.limits, "esxi").health == "draining"
    resume(esxi.store, "esxi")
    assert esxi.renew("esxi", WorkerState.DRAINING).wish.state == "run"
    assert resumed(esxi.store, "esxi", 5, Meanwhile(lambda: esxi.renew("esxi")))
    assert esxi.claim("esxi", OWN) != ()


def test_one_that_does_not_answer_is_not_waited_for_without_end(esxi: Stage) -> None:
    drain(esxi.store, "esxi")
    esxi.renew("esxi", WorkerState.DRAINING)
    resume(esxi.store, "esxi")
    ticks = iter((0.0, 1.0, 2.0))
    meanwhile = Meanwhile(lambda: None)
    assert not resumed(esxi.store, "esxi", 2, meanwhile, lambda: next(ticks))
