"""Lists of tasks, dead letters, queues, models and workers, from a real server."""

from __future__ import annotations

import pytest

from cogrid.errors import NotFoundError
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.task import Band
from cogrid.model.worker import Offer, OfferState
from cogrid.ops.models import models
from cogrid.ops.queues import queues
from cogrid.ops.spof import spof, without
from cogrid.ops.status import Only
from cogrid.ops.tasks import Filter, dead_letters, task_facts, tasks
from cogrid.ops.workers import idle, worker_facts, workers
from cogrid.rules.routing import Routing
from cogrid.store.tasks import cancel
from tests.reaper.stage import MODEL, Stage

SHARED = f"tasks:cpu:shared:{MODEL}"
OWN = "tasks:cpu:esxi"
LIMITS = Limits()


@pytest.fixture
def grid(stage: Stage) -> Stage:
    """One runs, three wait, one was cancelled."""
    stage.worker("esxi")
    stage.submit("r1")
    stage.claim("esxi", SHARED)
    stage.submit("p1")
    stage.submit("p2", OWN, band=Band.BATCH)
    stage.submit("p3", "tasks:cpu:shared:other:7b", "other:7b")
    stage.submit("c1")
    stage.store.do(cancel(stage.keys, TaskId("c1"), "by ada"))
    return stage


def ids(grid: Stage, **wanted: object) -> list[str]:
    return sorted(row.id for row in tasks(grid.store, Filter(**wanted)).tasks)  # type: ignore[arg-type]


def test_open_tasks_unless_states_are_asked_for(grid: Stage) -> None:
    assert ids(grid) == ["p1", "p2", "p3", "r1"]
    assert ids(grid, states=("running", "cancelled")) == ["c1", "r1"]
    assert ids(grid, states=("dead",)) == []


def test_every_filter_narrows(grid: Stage) -> None:
    assert ids(grid, model="other:7b") == ["p3"]
    assert ids(grid, queue=OWN) == ["p2"]
    assert ids(grid, worker="esxi") == ["r1"]
    assert ids(grid, user="ada") == ["p1", "p2", "p3", "r1"]
    assert ids(grid, user="bob") == []


def test_the_oldest_come_first_and_a_limit_says_how_many_there_are(grid: Stage) -> None:
    grid.redis.hincrby("task:p2", "submitted_at", -60_000)
    found = tasks(grid.store, Filter(most=2))
    assert found.tasks[0].id == "p2"
    assert (len(found.tasks), found.total, found.looked_at, found.cut) == (2, 4, 4, False)
    row = found.tasks[0]
    assert (row.state, row.band, row.queue) == ("pending", "batch", OWN)
    assert row.age_s is not None
    assert row.in_state_s is not None
    assert row.age_s >= 60 > row.in_state_s


def test_one_task_with_everything(grid: Stage) -> None:
    found = task_facts(grid.store, "p2")
    assert (found.id, found.place, found.band, found.body_bytes) == ("p2", 1, "batch", 2)
    assert found.submitted_at is not None
    assert found.submitted_at.endswith("Z")
    assert found.wanted_until is not None
    assert found.finished_at is None
    with pytest.raises(NotFoundError, match="more than one task begins with p: p1, p2, p3"):
        task_facts(grid.store, "p")


def test_dead_letters_say_why_and_until_when(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("d1", streamed=False, max_recoveries=0)
    stage.claim("esxi", SHARED)
    stage.let_pass(21)
    stage.sweep()
    found = dead_letters(stage.store)
    assert (found.total, [letter.id for letter in found.letters]) == (1, ["d1"])
    letter = found.letters[0]
    assert (letter.worker, letter.body_bytes) == ("esxi", 2)
    assert letter.error is not None
    assert "it was given up" in letter.error
    assert letter.kept_until is not None
    assert letter.died_at is not None
    assert letter.kept_until[:10] > letter.died_at[:10]
    assert dead_letters(stage.store, "other").total == 0


def test_queues_say_how_quick_they_are_and_who_serves_them(grid: Stage) -> None:
    grid.worker("ai-core", pool="gpu")
    grid.redis.hset(f"rate:{SHARED}", mapping={"mean_s": "4.0000", "var": "1.0000"})
    found = {row.name: row for row in queues(grid.store, LIMITS).queues}
    assert set(found) == {SHARED, OWN, "tasks:cpu:shared:other:7b"}
    shared = found[SHARED]
    assert (shared.depth, shared.servable, shared.served_by) == (1, True, ("esxi",))
    assert (shared.gap_s, shared.gap_sd_s, shared.drained_per_min) == (4.0, 1.0, 15.0)
    assert shared.wait_s == 4.0
    assert (found[OWN].worker, found[OWN].served_by) == ("esxi", ("esxi",))
    lost = found["tasks:cpu:shared:other:7b"]
    assert (lost.servable, lost.served_by, lost.gap_s, lost.wait_s) == (False, (), None, None)


def test_models_with_their_copies_and_drift(stage: Stage) -> None:
    stage.hello("a")
    stage.renew("a", offers=(
        Offer("m", digest="1" * 64, loaded=True, size_bytes=1000, vram_bytes=750),
        Offer("n", OfferState.FAILED, reason="no memory"),
    ))  # fmt: skip
    stage.hello("b", pool="gpu")
    stage.renew("b", offers=(Offer("m", digest="2" * 64),))
    stage.submit("t1", "tasks:cpu:shared:m", "m")
    found = models(stage.store, LIMITS)
    m, n = found.models
    assert (m.name, m.drift, m.queued, len(m.copies)) == ("m", True, 1, 2)
    assert sorted(m.homes or ()) == ["a", "b"]
    copy = next(each for each in m.copies if each.worker == "a")
    assert (copy.loaded, copy.gpu_share, copy.home) == (True, 0.75, True)
    assert (n.name, n.homes, n.copies[0].reason) == ("n", (), "no memory")
    assert [each.subject for each in found.findings] == ["m"]
    assert [row.name for row in models(stage.store, LIMITS, "n").models] == ["n"]
    assert [row.name for row in models(stage.store, LIMITS, only_drift=True).models] == ["m"]
    with pytest.raises(NotFoundError, match="'o' is not known"):
        models(stage.store, LIMITS, "o")


def test_workers_are_narrowed(grid: Stage) -> None:
    grid.worker("ai-core", "other:7b", pool="gpu")

    def names(**only: str) -> list[str]:
        return [row.id for row in workers(grid.store, LIMITS, Only(**only)).workers]

    assert names() == ["ai-core", "esxi"]
    assert names(pool="gpu") == ["ai-core"]
    assert names(model=MODEL) == ["esxi"]
    assert names(worker="esxi", pool="gpu") == []
    with pytest.raises(NotFoundError) as refused:
        names(worker="esx")
    assert refused.value.hint == "did you mean esxi?"


def test_one_worker_with_everything(grid: Stage) -> None:
    grid.redis.hset("worker:esxi", "report", '{"memory_bytes": 5}')
    found = worker_facts(grid.store, LIMITS, "esxi")
    assert (found.health, found.busy, found.depth, found.queue) == ("busy", 1, 1, OWN)
    assert [run.id for run in found.runs] == ["r1"]
    assert [(model.name, model.home) for model in found.models] == [(MODEL, True)]
    assert found.lease_s is not None
    assert 0 < found.lease_s <= 20
    assert found.report == {"memory_bytes": 5}
    assert found.address is None
    grid.redis.hset("worker:esxi", "address", "192.168.0.41")
    assert worker_facts(grid.store, LIMITS, "esxi").address == "192.168.0.41"
    assert workers(grid.store, LIMITS, Only()).workers[0].address == "192.168.0.41"
    grid.redis.hset("worker:left", mapping={"registered_at": "2026-06-07T02:25:47Z"})
    left = worker_facts(grid.store, LIMITS, "left")
    assert (left.health, left.lease_s, left.registered_at) == (
        "dead", None, "2026-06-07T02:25:47Z"
    )  # fmt: skip


def test_why_a_worker_is_idle(grid: Stage) -> None:
    grid.worker("ai-core", pool="gpu")
    found = idle(grid.store, LIMITS, Routing(), "ai-core")
    assert found.what == "ai-core is idle: 3 tasks waiting, none of them for it"
    assert {each.queue: each.why for each in found.blocked} == {
        SHARED: "it is in pool gpu, the task waits in cpu",
        OWN: "the task waits in esxi's own queue",
        "tasks:cpu:shared:other:7b": "does not have the model",
    }


def test_what_would_be_lost(grid: Stage) -> None:
    found = without(grid.store, LIMITS, ("esxi",), ())
    assert (found.workers, found.running, found.moved) == (("esxi",), 1, 1)
    (lost,) = found.findings
    assert (lost.kind, lost.subject) == ("lost_model", MODEL)
    assert lost.evidence == "2 tasks queued for it now, which would wait for nothing"
    assert without(grid.store, LIMITS, (), ("esxi",)).workers == ("esxi",)
    with pytest.raises(NotFoundError) as refused:
        without(grid.store, LIMITS, (), ("nowhere",))
    assert refused.value.hint == "hosts: esxi"


def test_spof_counts_what_waits_in_own_queues(grid: Stage) -> None:
    found = spof(grid.store, LIMITS)
    by_model = {each.subject: each for each in found.findings}
    assert "2 queued" in by_model[MODEL].evidence
    assert by_model["other:7b"].kind == "no_home"
    losses = [(each.kind, each.name, each.models) for each in found.losses]
    assert losses == [("host", "esxi", (MODEL,))], "the only pool is the grid"
    with pytest.raises(NotFoundError, match="is not known"):
        spof(grid.store, LIMITS, "never:1b")
