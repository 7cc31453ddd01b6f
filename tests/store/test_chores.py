"""Chores: what an operator asks of one worker takes no slot, never moves, and fails with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.model.task import Band, Kind, OnClose
from cogrid.store.administration import requeue
from cogrid.store.passes import Acted, drop_held, fail_homeless, move, reap
from cogrid.store.snapshot import read_snapshot
from cogrid.store.tasks import (
    Cancelled,
    Claim,
    Claimed,
    Finished,
    Outcome,
    Submission,
    Submitted,
    append,
    cancel,
    claim,
    finish,
    submit,
)
from cogrid.store.workers import Held, Life, Renewed, Welcome, Who, forget, hello, renew
from tests.build import NOW_MS
from tests.store import seed
from tests.store.checker import violations
from tests.store.seed import OWN, SHARED
from tests.store.world import LIMITS, RUN_ID, World

ESXI = WorkerId("esxi")
C1, TOKEN = TaskId("c1"), Token("esxi1:1:1")
PULL = Submission(
    C1, Kind.PULL, "llama3.2:1b", Queue(OWN), Queue(OWN), seed.BODY, "operator",
    band=Band.OPERATOR, on_close=OnClose.KEEP, max_attempts=1, max_recoveries=0,
)  # fmt: skip


def submitted(world: World, chore: Submission = PULL) -> Submitted:
    return world.do(submit(world.keys, chore))


def claimed(world: World, k: int = 1, free: int = 0) -> Claimed:
    queues = ((OWN, True), (SHARED, False))
    return world.do(claim(world.keys, Claim(ESXI, "esxi1", k, free, queues, 90_000)))


def running(world: World) -> None:
    """A worker that does the chore."""
    world.seed(seed.worker(), seed.mark())
    assert submitted(world).status == "new"
    assert [task.id for task in claimed(world).tasks] == ["c1"]
    world.mark()


def end(world: World) -> tuple[str, str]:
    told = world.hash("task:c1")
    return told["state"], told.get("code", "")


@pytest.fixture(autouse=True)
def lawful(world: World) -> object:
    yield
    assert violations(world.client, now_ms=world.now_ms) == []


@pytest.mark.parametrize(
    "seeded",
    [
        seed.worker(state="starting"),
        seed.worker(state="draining"),
        seed.worker(wanted='{"state":"drain"}'),
        seed.worker(lease_ms=-1),
        seed.home(),
    ],
)
def test_only_a_ready_worker_is_asked(world: World, seeded: seed.Seed) -> None:
    world.seed(seeded)
    assert submitted(world) == Submitted("not_ready")
    assert world.changes() == {}


@pytest.mark.parametrize("fields", [{}, {"state": "draining"}, {"wanted": '{"state":"drain"}'}])
def test_it_goes_first_and_takes_no_slot(world: World, fields: dict[str, str]) -> None:
    world.seed(seed.worker(tasks=("r1",)), seed.running("r1", token="esxi1:0:1"))
    world.seed(seed.pending("t1", queue=OWN))
    assert submitted(world) == Submitted("new", OWN, place=1)
    world.seed(seed.fields("worker:esxi", **fields) if fields else seed.worker())
    tasks = claimed(world).tasks
    assert len(tasks) == 1
    got = tasks[0]
    assert (got.id, got.kind, got.token) == ("c1", Kind.PULL, TOKEN)
    found = world.changes()
    assert found["worker:esxi:chores"] == {"+c1"}
    assert found["grid:due"] == {"c1": NOW_MS + 90_000}
    assert not {"worker:esxi:tasks", f"rate:{OWN}"} & set(found)
    worker = world.store.read(read_snapshot(world.keys, info=False)).workers[0]
    assert (worker.chores, worker.tasks, worker.busy) == (("c1",), ("r1",), 1)
    assert claimed(world).tasks == (got,)


@pytest.mark.parametrize("state", ["starting", "away"])
def test_who_is_not_there_takes_none(world: World, state: str) -> None:
    world.seed(seed.worker())
    submitted(world)
    world.seed(seed.fields("worker:esxi", state=state))
    assert claimed(world) == Claimed("not_ready")


def test_a_slot_stays_free_beside_it(world: World) -> None:
    running(world)
    world.seed(seed.pending("t1"))
    assert [task.id for task in claimed(world, 2, 1).tasks] == ["t1"]


def test_progress_and_a_good_end(world: World) -> None:
    running(world)
    assert world.do(append(world.keys, C1, TOKEN, 1, (b'{"content":"{}"}',), 1000)).status == "ok"
    assert world.do(finish(world.keys, ESXI, C1, TOKEN, Outcome("done", n=1))) == Finished(
        "ok", "done"
    )
    found = world.changes()
    assert found["worker:esxi:chores"] is None
    assert not {"worker:esxi", "usage:2026-06-07"} & set(found)
    assert not [key for key in found if key.startswith("usage:")]


def test_cancelled_it_leaves_no_token(world: World) -> None:
    running(world)
    world.tick(10)
    assert world.do(cancel(world.keys, C1, "enough")) == Cancelled("ok", "running")
    assert world.changes()["wake:@esxi"] == {"c1": NOW_MS + 10}
    assert "worker:esxi:revoked" not in world.dump()
    told = Life(
        "ready", (), (), 1, 0, 1, (Held(C1, TOKEN, 0, 1000),), 20_000  # type: ignore[arg-type]
    )  # fmt: skip
    assert world.do(renew(world.keys, ESXI, "esxi1", "lock-esxi", told)).lost == (C1,)


def test_one_that_is_not_named_is_handed_back_and_fails(world: World) -> None:
    running(world)
    told = Life("ready", (), (), 1, 0, 1, (), 20_000)  # type: ignore[arg-type]
    said: Renewed = world.do(renew(world.keys, ESXI, "esxi1", "lock-esxi", told))
    assert said.unknown_runs == ((C1, TOKEN),)
    assert world.do(finish(world.keys, ESXI, C1, TOKEN, Outcome("back"))) == Finished(
        "ok", "failed"
    )
    assert end(world) == ("failed", "worker_gone")


def test_a_failure_is_final(world: World) -> None:
    running(world)
    outcome = Outcome("failed", retry=True, message="stalled", code="timeout")
    assert world.do(finish(world.keys, ESXI, C1, TOKEN, outcome)) == Finished("ok", "failed")
    assert end(world) == ("failed", "timeout")


def taken_back(world: World) -> Acted:
    call = reap(world.keys, C1, TOKEN, Queue(SHARED), "it is gone", "spent", RUN_ID, LIMITS)
    return world.do(call)


def test_it_fails_with_its_worker(world: World) -> None:
    running(world)
    assert taken_back(world) == Acted("moved_on")
    world.seed(seed.worker(lease_ms=-1, claim=1))
    assert taken_back(world) == Acted("failed", "dead_worker")
    assert end(world) == ("failed", "worker_gone")


def test_silence_is_a_timeout(world: World) -> None:
    running(world)
    world.client.zadd("grid:due", {"c1": NOW_MS})
    assert taken_back(world) == Acted("failed", "zombie_running")
    assert end(world) == ("failed", "timeout")


def test_it_fails_with_the_process(world: World) -> None:
    running(world)
    who = Who(ESXI, "esxi2", "lock-esxi", "esxi", "cpu", 1, "0", "ollama")
    assert world.do(hello(world.keys, who, 20_000)) == Welcome("ok", "starting")
    assert world.changes()["grid:due"] == {"c1": 0}
    assert taken_back(world) == Acted("failed", "restarted")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (seed.worker(lease_ms=-1), Acted("failed", "dead_worker")),
        (seed.worker(polled_at=NOW_MS - 20_000), Acted("failed", "ghost_pending")),
        (seed.worker(state="draining"), Acted("moved_on")),
        (seed.worker(tasks=("r1",)), Acted("moved_on")),
    ],
)
def test_it_never_moves(world: World, changed: seed.Seed, said: Acted) -> None:
    world.seed(seed.worker(), seed.mark(), seed.running("r1", token="esxi1:0:1"))
    world.client.srem("worker:esxi:tasks", "r1")
    submitted(world)
    world.seed(changed)
    world.client.sadd("worker:esxi:tasks", "r1")
    if said.status == "failed":
        world.client.hset("worker:esxi", "slots", 2)
    world.tick(5_000 if said.status == "moved_on" else 0)
    world.seed(seed.mark(last_pass_ms=world.now_ms - NOW_MS))
    call = move(world.keys, C1, Queue(OWN), Queue(SHARED), "", RUN_ID, LIMITS)
    assert world.do(call) == said
    assert end(world)[0] == ("failed" if said.status == "failed" else "pending")


def test_it_waits_for_no_home_and_goes_nowhere(world: World) -> None:
    world.seed(seed.worker(), seed.mark())
    submitted(world)
    world.tick(1_000)
    world.client.hincrby("task:c1", "queued_at", -60_000)
    assert world.do(fail_homeless(world.keys, C1, "no", RUN_ID, LIMITS)) == Acted("moved_on")
    claimed(world)
    said = world.do(requeue(world.keys, C1, TOKEN, Queue(SHARED), "ada"))
    assert said.status == "moved_on"


def test_a_worker_with_chores_is_not_forgotten_by_mistake(world: World) -> None:
    running(world)
    world.seed(seed.worker(lease_ms=-1, claim=1))
    assert world.do(forget(world.keys, ESXI, False, "ada")).running == 1


def test_an_entry_that_its_hash_denies_is_dropped(world: World) -> None:
    running(world)
    world.seed(seed.ended("t9"))
    world.client.sadd("worker:esxi:chores", "t9")
    world.mark()
    assert world.do(drop_held(world.keys, ESXI, (TaskId("t9"), C1))) == 1
    assert world.changes()["worker:esxi:chores"] == {"-t9"}
    world.client.xtrim("grid:events", 0)


def test_a_chore_that_exists_is_not_made_twice(world: World) -> None:
    world.seed(seed.worker())
    submitted(world)
    assert submitted(world, replace(PULL)) == Submitted("exists", state="pending", queue=OWN)
