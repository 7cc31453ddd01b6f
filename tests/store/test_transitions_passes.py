"""What a pass of the reaper does: the whole state before, one call, the whole state after."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.names import Queue, TaskId, Token, WorkerId
from cogrid.store.passes import (
    Acted,
    Began,
    Tended,
    begin_pass,
    drop_held,
    drop_queued,
    expire,
    fail_homeless,
    move,
    promote,
    reap,
    stamp_homes,
    tend,
)
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import LAST, MODEL, OWN, SHARED, score
from tests.store.world import LIMITS, REPLICATION_ID, RUN_ID, World

T1, TOKEN = TaskId("t1"), Token("esxi1:1:1")
RUN = NOW_MS - 3_000
GPU = Queue(f"tasks:gpu:shared:{MODEL}")
LEASE_MS = 20_000


# --- begin-pass -------------------------------------------------------------------------------


def began(world: World, run_id: str = RUN_ID, replication_id: str = REPLICATION_ID) -> Began:
    return world.do(begin_pass(world.keys, run_id, replication_id, LIMITS))


def test_the_first_pass_of_a_server_holds_for_a_lease(world: World) -> None:
    assert began(world) == Began("held", NOW_MS, NOW_MS + LEASE_MS, 0)
    assert world.changes() == {
        "grid:reaper": {
            "run_id": RUN_ID, "replication_id": REPLICATION_ID, "schema": "1",
            "last_pass": str(NOW_MS), "hold_from": str(NOW_MS),
            "hold_until": str(NOW_MS + LEASE_MS),
        },
        "grid:events": [("hold", "", "", "", f"last pass {NOW_MS} ms ago")],
    }  # fmt: skip


@pytest.mark.parametrize("ago_ms", [0, 1_000, 3_000])
def test_a_pass_in_time_goes_on(world: World, ago_ms: int) -> None:
    world.seed(seed.mark(last_pass_ms=-ago_ms))
    assert began(world) == Began("ok", NOW_MS, NOW_MS - 20_000, NOW_MS - ago_ms)
    assert world.changes() == ({"grid:reaper": {"last_pass": str(NOW_MS)}} if ago_ms else {})


@pytest.mark.parametrize(
    ("seeded", "run_id", "replication_id"),
    [
        (seed.mark(last_pass_ms=-3_001), RUN_ID, REPLICATION_ID),
        (seed.mark(last_pass_ms=1), RUN_ID, REPLICATION_ID),
        (seed.mark(), "restarted", REPLICATION_ID),
        (seed.mark(), RUN_ID, "failed over"),
    ],
)
def test_a_pass_after_a_disturbance_holds(world: World, seeded: seed.Seed, run_id: str,
                                          replication_id: str) -> None:  # fmt: skip
    world.seed(seeded)
    got = began(world, run_id, replication_id)
    assert (got.status, got.hold_until_ms) == ("held", NOW_MS + LEASE_MS)


def test_a_hold_goes_on_over_the_passes_within_it(world: World) -> None:
    world.seed(seed.mark(hold_ms=500, hold_from_ms=-19_500))
    assert began(world).status == "held"
    world.tick(499)
    assert began(world).status == "held"
    world.tick(1)
    assert began(world).status == "ok"
    assert world.hash("grid:reaper")["hold_from"] == str(NOW_MS - 19_500)


def test_a_second_disturbance_lengthens_the_hold_it_began(world: World) -> None:
    world.seed(seed.mark(hold_ms=5_000, hold_from_ms=-15_000))
    assert began(world, "restarted").hold_until_ms == NOW_MS + LEASE_MS
    assert world.hash("grid:reaper")["hold_from"] == str(NOW_MS - 15_000)


def test_a_hold_of_a_clock_that_went_back_does_not_last_for_ever(world: World) -> None:
    world.seed(seed.mark(hold_ms=3_600_000, last_pass_ms=3_590_000))
    assert began(world).hold_until_ms == NOW_MS + LEASE_MS
    assert world.hash("grid:reaper")["hold_from"] == str(NOW_MS)


def test_a_newer_schema_is_left_alone(world: World) -> None:
    world.seed(seed.mark(schema=2))
    assert began(world) == Began("newer", schema=2)
    assert world.changes() == {}


# --- reap -------------------------------------------------------------------------------------


def reaped(world: World, queue: str = SHARED, token: str = TOKEN, run_id: str = RUN_ID) -> Acted:
    call = reap(world.keys, T1, Token(token), Queue(queue), "broken", "spent", run_id, LIMITS)
    return world.do(call)


def test_a_dead_workers_run_is_next_in_its_queue(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1", followers="c1:1"),
        seed.pending("t2", turn=5), seed.fields(f"turns:{SHARED}", **{"v:0": 4}),
    )  # fmt: skip
    assert reaped(world) == Acted("requeued", "dead_worker", SHARED)
    reset = {"kind": "reset", "worker": "esxi", "reason": "dead_worker", "queue": SHARED}
    assert world.changes() == {
        "task:t1": {
            "state": "pending", "token": "", "last_token": "", "queued_at": str(NOW_MS),
            "reason": "dead_worker", "recoveries": "1", "solo": "0",
        },
        "task:t1:out": [(f"{RUN}-1", reset)],
        SHARED: {"t1": score(turn=4, seq=0)},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "worker:esxi": {"revoked_at": str(NOW_MS)},
        "worker:esxi:tasks": None,
        "worker:esxi:revoked": {"+esxi1:1:1"},
        "worker:esxi:revoked ttl": 3_600,
        "wake:@esxi": {"t1": NOW_MS},
        "wake:@esxi ttl": 60,
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:events": [("reaped", "t1", "esxi", TOKEN, "dead_worker")],
    }  # fmt: skip


def test_a_zombie_avoids_its_worker_and_keeps_the_slot(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(tasks=("t1",)), seed.worker("ai-core", pool="gpu"),
        seed.running("t1", due_ms=0),
    )  # fmt: skip
    assert reaped(world, "tasks:gpu:ai-core") == Acted(
        "requeued", "zombie_running", "tasks:gpu:ai-core"
    )
    found = world.changes()
    assert found["task:t1"]["avoid"] == "esxi"
    assert found["task:t1"]["queue"] == "tasks:gpu:ai-core"
    assert found["worker:esxi"] == {"zombies": "1", "revoked_at": str(NOW_MS)}
    assert found["worker:esxi:revoked ttl"] == 3_618
    assert found["wake:@ai-core"] == {"t1": NOW_MS}


def test_a_run_with_time_left_is_no_zombie(world: World) -> None:
    world.seed(seed.mark(), seed.worker(tasks=("t1",)), seed.running("t1", due_ms=1))
    assert reaped(world) == Acted("moved_on")
    assert world.changes() == {}


def test_a_queue_that_cannot_take_it_now_is_not_taken(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(tasks=("t1",)), seed.worker("ai-core", pool="gpu", lease_ms=-1),
        seed.running("t1", due_ms=0),
    )  # fmt: skip
    assert reaped(world, "tasks:gpu:ai-core") == Acted("requeued", "zombie_running", GPU)


def test_a_restarted_workers_run_is_taken_back_without_doubt(world: World) -> None:
    """Another instance is no deadline: the one that ran it is gone for certain."""
    world.seed(
        seed.mark(hold_ms=9_000), seed.worker(instance="esxi2", tasks=("t1",)), seed.running("t1")
    )
    assert reaped(world) == Acted("requeued", "restarted", SHARED)
    found = world.changes()
    assert found["worker:esxi:tasks"] is None
    assert "worker:esxi" not in found
    assert "worker:esxi:revoked" not in found


def test_a_run_whose_workers_hash_is_gone_waits_for_the_lease(world: World) -> None:
    world.seed(seed.mark(), seed.worker(tasks=("t1",)), seed.running("t1"))
    world.client.delete("worker:esxi")
    assert reaped(world) == Acted("moved_on")
    world.client.zadd("grid:workers", {"esxi": NOW_MS - 1})
    world.mark()
    assert reaped(world) == Acted("requeued", "dead_worker", SHARED)
    assert "worker:esxi" not in world.changes()
    assert world.client.smembers("worker:esxi:revoked") == {b"esxi1:1:1"}


def test_a_broken_stream_fails(world: World) -> None:
    world.seed(seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1", texts=1))
    assert reaped(world) == Acted("failed", "dead_worker")
    told = world.hash("task:t1")
    assert (told["state"], told["code"], told["error"], told.get("recoveries")) == (
        "failed", "broken_stream", "broken", None,
    )  # fmt: skip
    assert world.changes()["worker:esxi:revoked"] == {"+esxi1:1:1"}


def test_what_nobody_has_read_is_run_again(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)),
        seed.running("t1", texts=9, streamed=0),
    )  # fmt: skip
    assert reaped(world) == Acted("requeued", "dead_worker", SHARED)
    assert world.hash("task:t1")["n"] == "0"


def test_from_the_second_recovery_on_it_runs_alone(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1", recoveries=1)
    )
    assert reaped(world).status == "requeued"
    assert world.changes()["task:t1"]["solo"] == "1"
    assert world.hash("task:t1")["recoveries"] == "2"


def test_recoveries_come_to_an_end(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1", recoveries=3)
    )
    assert reaped(world) == Acted("dead", "dead_worker")
    week = 7 * 86_400
    found = world.changes()
    ((_, end),) = found["task:t1:out"]
    assert (end["state"], end["code"], end["message"]) == ("dead", "recoveries_spent", "spent")
    assert found["grid:dead"] == {"t1": NOW_MS + week * 1_000}
    assert {key: found[key] for key in found if key.endswith(" ttl") and "t1" in key} == {
        "task:t1 ttl": week, "task:t1:out ttl": week, "task:t1:body ttl": week,
    }  # fmt: skip
    assert "grid:finished" not in found


@pytest.mark.parametrize(
    ("mark", "run_id"),
    [
        (seed.mark(hold_ms=1), RUN_ID),
        (seed.mark(), "another server"),
        (seed.mark(last_pass_ms=-3_001), RUN_ID),
        (seed.mark(last_pass_ms=1), RUN_ID),
        (seed.home(), RUN_ID),
    ],
)
def test_in_doubt_no_deadline_counts(world: World, mark: seed.Seed, run_id: str) -> None:
    world.seed(
        mark, seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1", due_ms=-5),
        seed.pending("t2", queue=OWN), seed.pending("t3", due_ms=-5, queued_at=NOW_MS - 300_005),
        seed.pending("t4", model="nobody's", queued_at=NOW_MS - 60_000,
                     queue="tasks:cpu:shared:nobody's"),
    )  # fmt: skip
    t2, t3, t4 = TaskId("t2"), TaskId("t3"), TaskId("t4")
    own, shared = Queue(OWN), Queue(SHARED)
    assert reaped(world, run_id=run_id) == Acted("held")
    assert world.do(move(world.keys, t2, own, shared, "", run_id, LIMITS)) == Acted("held")
    assert world.do(expire(world.keys, t3, "", run_id, LIMITS)) == Acted("held")
    assert world.do(fail_homeless(world.keys, t4, "", run_id, LIMITS)) == Acted("held")
    assert world.changes() == {}


@pytest.mark.parametrize(
    "seeded",
    [seed.running("t1", token="esxi1:2:1", due_ms=-5), seed.pending("t1"), seed.ended("t1"),
     seed.waiting("t1"), seed.pending("t2")],
)  # fmt: skip
def test_a_run_that_has_moved_on_is_left_alone(world: World, seeded: seed.Seed) -> None:
    """The pass read it a moment ago; what counts is now."""
    world.seed(seed.mark(), seed.worker(lease_ms=-1), seeded)
    assert reaped(world) == Acted("moved_on")
    assert world.changes() == {}


def test_a_run_whose_end_was_not_committed_ends_so(world: World) -> None:
    world.seed(seed.mark(), seed.worker(lease_ms=-1, tasks=("t1",)), seed.running("t1"))
    end: dict[Any, Any] = {"kind": "end", "state": "done", "finish_reason": "stop"}
    world.client.xadd("task:t1:out", end, id=f"{RUN}-{LAST}")
    assert reaped(world) == Acted("moved_on")
    assert world.hash("task:t1")["state"] == "done"


# --- move -------------------------------------------------------------------------------------


def moved(world: World, to: str = SHARED, source: str = OWN) -> Acted:
    call = move(world.keys, T1, Queue(source), Queue(to), "no claim", RUN_ID, LIMITS)
    return world.do(call)


def test_a_ghosts_tasks_go_where_they_are_served(world: World) -> None:
    """In front, and the ghost's queue is gone with its last task."""
    stale = NOW_MS - 15_001
    world.seed(
        seed.mark(), seed.worker(polled_at=stale, freed_at=stale, hello_at=stale),
        seed.pending("t1", queue=OWN, followers="c1:1"), seed.pending("t2", turn=9),
        seed.fields(f"turns:{SHARED}", **{"v:0": 8}), seed.no_mark(),
    )  # fmt: skip
    assert moved(world) == Acted("ok", "ghost_pending", SHARED)
    told = {"kind": "moved", "worker": "esxi", "reason": "ghost_pending", "queue": SHARED}
    assert world.changes() == {
        "task:t1": {"queue": SHARED, "reason": "ghost_pending"},
        "task:t1:out": [("0-1", told)],
        OWN: None,
        f"turns:{OWN}": None,
        SHARED: {"t1": score(turn=8, seq=0)},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "grid:queues": {OWN: None},
        "grid:events": [("moved", "t1", "esxi", "", "ghost_pending no claim")],
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }


@pytest.mark.parametrize("stamp", ["polled_at", "freed_at", "hello_at"])
def test_each_proof_of_life_keeps_a_worker_from_being_a_ghost(world: World, stamp: str) -> None:
    stamps: dict[str, Any] = dict.fromkeys(("polled_at", "freed_at", "hello_at"), NOW_MS - 15_001)
    stamps[stamp] = NOW_MS - 15_000
    world.seed(seed.mark(), seed.worker(**stamps), seed.pending("t1", queue=OWN))
    assert moved(world) == Acted("moved_on")
    assert world.changes() == {}


def test_the_age_of_a_task_says_nothing(world: World) -> None:
    """A worker that polls keeps what waits for it, however long that has waited."""
    world.seed(seed.mark(), seed.worker(slots=2),
               seed.pending("t1", queue=OWN, queued_at=NOW_MS - 200_000))  # fmt: skip
    assert moved(world) == Acted("moved_on")


@pytest.mark.parametrize(
    ("seeded", "reason"),
    [
        (seed.worker("ai-core"), "dead_worker"),
        (seed.worker(lease_ms=-1), "dead_worker"),
        (seed.worker(state="draining"), "not_ready"),
        (seed.worker(state="away"), "not_ready"),
        (seed.worker(wanted='{"state":"drain"}'), "not_ready"),
        (seed.worker(state="starting", hello_at=NOW_MS), "not_ready"),
        (seed.worker(state="starting", hello_at=NOW_MS - 300_001), "ghost_pending"),
        (seed.worker(pool="gpu"), "not_ready"),
    ],
)
def test_a_queue_that_nobody_serves_is_left_at_once(world: World, seeded: seed.Seed,
                                                    reason: str) -> None:  # fmt: skip
    world.seed(seed.mark(), seeded, seed.pending("t1", queue=OWN, queued_at=NOW_MS))
    assert moved(world) == Acted("ok", reason, SHARED)


def test_a_full_workers_task_moves_after_a_second(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(tasks=("r1",), polled_at=1, freed_at=1), seed.running("r1"),
        seed.pending("t1", queue=OWN, queued_at=NOW_MS - 999),
    )  # fmt: skip
    assert moved(world) == Acted("moved_on")
    world.tick(1)
    assert moved(world) == Acted("ok", "worker_full", SHARED)


def test_a_shared_task_changes_pools_after_two_seconds(world: World) -> None:
    world.seed(seed.mark(), seed.pending("t1", queued_at=NOW_MS - 1_999))
    assert moved(world, GPU, SHARED) == Acted("moved_on")
    world.tick(1)
    assert moved(world, GPU, SHARED) == Acted("ok", "better_pool", GPU)
    assert world.hash("task:t1")["queue"] == GPU


@pytest.mark.parametrize(
    "seeded",
    [seed.pending("t1"), seed.running("t1"), seed.waiting("t1"), seed.ended("t1"),
     seed.pending("t2")],
)  # fmt: skip
def test_a_task_that_is_elsewhere_is_left_alone(world: World, seeded: seed.Seed) -> None:
    world.seed(seed.mark(), seed.worker(lease_ms=-1), seeded)
    assert moved(world) == Acted("moved_on")
    assert world.changes() == {}


def test_a_task_is_not_moved_to_where_it_is(world: World) -> None:
    world.seed(seed.mark(), seed.pending("t1", queued_at=NOW_MS - 9_000))
    assert moved(world, SHARED, SHARED) == Acted("moved_on")
    assert moved(world, "tasks:cpu:esxi", SHARED) == Acted("moved_on")
    assert world.changes() == {}


# --- promote, expire, fail-homeless ------------------------------------------------------------


def promoted(world: World, queue: str = SHARED) -> Acted:
    return world.do(promote(world.keys, T1, Queue(queue)))


def test_a_back_off_ends_in_a_queue(world: World) -> None:
    world.seed(seed.worker(), seed.waiting("t1", followers="c1:1"))
    assert promoted(world) == Acted("ok", queue=SHARED)
    assert world.changes() == {
        "task:t1": {"state": "pending", "queued_at": str(NOW_MS)},
        SHARED: {"t1": score(turn=0, seq=0)},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "grid:queues": {SHARED: NOW_MS},
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:events": [("promoted", "t1", "", "", SHARED)],
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }


@pytest.mark.parametrize(
    "seeded", [seed.waiting("t1", due_ms=1), seed.pending("t1", due_ms=-5), seed.pending("t2")]
)
def test_only_a_back_off_that_is_over_ends(world: World, seeded: seed.Seed) -> None:
    world.seed(seeded)
    assert promoted(world) == Acted("moved_on")
    assert world.changes() == {}


def expired(world: World) -> Acted:
    return world.do(expire(world.keys, T1, "waited 300 s", RUN_ID, LIMITS))


def overdue(**changed: Any) -> seed.Seed:
    return seed.pending("t1", due_ms=0, queued_at=NOW_MS - 300_000, **changed)


def test_a_task_waits_as_long_as_it_may(world: World) -> None:
    world.seed(seed.mark(), overdue())
    assert expired(world) == Acted("ok")
    told = world.hash("task:t1")
    assert (told["state"], told["code"], told["error"]) == (
        "expired", "queue_timeout", "waited 300 s",
    )  # fmt: skip
    ((_, end),) = world.changes()["task:t1:out"]
    assert (end["kind"], end["state"]) == ("end", "expired")


@pytest.mark.parametrize(
    "seeded",
    [seed.pending("t1", due_ms=1), seed.running("t1", due_ms=-5), seed.waiting("t1", due_ms=-5),
     seed.pending("t2", due_ms=-5)],
)  # fmt: skip
def test_only_what_is_queued_and_over_its_limit_expires(world: World, seeded: seed.Seed) -> None:
    world.seed(seed.mark(), seed.worker(tasks=("t1",)), seeded)
    assert expired(world) == Acted("moved_on")
    assert world.changes() == {}


def test_a_limit_that_passed_during_a_hold_is_moved_on_by_it(world: World) -> None:
    world.seed(
        seed.mark(hold_ms=-1_000, hold_from_ms=-21_000),
        seed.pending("t1", due_ms=-5_000, queued_at=NOW_MS - 305_000),
        seed.pending("t2", due_ms=-21_001, queued_at=NOW_MS - 321_001),
    )
    assert expired(world) == Acted("postponed", str(NOW_MS + 15_000))
    assert world.changes() == {"grid:due": {"t1": NOW_MS + 15_000}}
    t2 = expire(world.keys, TaskId("t2"), "", RUN_ID, LIMITS)
    assert world.do(t2) == Acted("ok")


@pytest.mark.parametrize(("limit_ms", "then"), [(300_000, NOW_MS + 299_000), (0, float("inf"))])
def test_a_deadline_that_is_not_its_own_is_put_right(world: World, limit_ms: int,
                                                     then: float) -> None:  # fmt: skip
    """What a claim has left that was stopped before its commit."""
    world.seed(seed.mark(), seed.pending("t1", due_ms=-5, queue_timeout_ms=limit_ms))
    assert expired(world) == Acted("moved_on")
    assert world.changes() == {
        "grid:due": {"t1": then},
        "grid:events": [("repaired", "t1", "", "", "due before its limit")],
    }


def homeless(world: World) -> Acted:
    return world.do(fail_homeless(world.keys, T1, "nobody", RUN_ID, LIMITS))


@pytest.mark.parametrize("seeded", [seed.pending("t1"), seed.waiting("t1", due_ms=9_000)])
def test_a_task_that_nobody_can_serve_fails(world: World, seeded: seed.Seed) -> None:
    world.seed(seed.mark(), seeded, seed.home(ago_ms=7_001))
    assert homeless(world) == Acted("ok")
    told = world.hash("task:t1")
    assert (told["state"], told["code"], told["error"]) == ("failed", "no_home", "nobody")


@pytest.mark.parametrize(
    "seeds",
    [
        (seed.pending("t1"), seed.home(ago_ms=7_000)),
        (seed.pending("t1", queued_at=NOW_MS - 7_000),),
        (seed.running("t1"), seed.home(ago_ms=60_000)),
        (seed.ended("t1"), seed.home(ago_ms=60_000)),
        (seed.home(ago_ms=60_000),),
    ],
)
def test_only_what_waits_without_a_home_fails(world: World, seeds: tuple[seed.Seed, ...]) -> None:
    world.seed(seed.mark(), seed.worker(tasks=("t1",)), *seeds)
    assert homeless(world) == Acted("moved_on")
    assert world.changes() == {}


def test_a_model_that_never_had_a_home_has_the_tasks_own_wait(world: World) -> None:
    world.seed(seed.mark(), seed.pending("t1", queued_at=NOW_MS - 7_001))
    assert homeless(world) == Acted("ok")


COUNTED = {"grid:totals": {"counted_at": str(NOW_MS)}}

# --- stamp-homes, tend, drop -------------------------------------------------------------------


def test_homes_are_stamped_and_old_ones_forgotten(world: World) -> None:
    month = 30 * 86_400_000
    world.seed(seed.home("old", month), seed.home("kept", month - 1), seed.home())
    assert world.do(stamp_homes(world.keys, (MODEL, "new"))) == 2
    assert world.changes() == {"grid:models": {MODEL: NOW_MS, "new": NOW_MS, "old": None}}


def test_markers_are_armed_again(world: World) -> None:
    world.seed(
        seed.pending("t1"),
        seed.no_mark(),
        seed.pending("t2", queue=OWN),
    )
    world.client.zadd("grid:queues", {GPU: NOW_MS})
    world.mark()
    asked = (Queue(SHARED), Queue(OWN), GPU)
    assert world.do(tend(world.keys, asked)) == Tended(armed=1, dropped=0, purged=0)
    assert world.changes() == {
        f"wake:{SHARED}": {"armed": NOW_MS},
        "grid:queues": {GPU: None},
        **COUNTED,
    }


def test_what_is_due_without_being_open_is_dropped(world: World) -> None:
    world.seed(seed.pending("t1"), seed.ended("t2"))
    world.client.zadd("grid:due", {"t2": 5, "gone": 6})
    world.client.zadd("grid:clients", {"t2": 5, "gone": 6})
    world.client.set("task:gone:body", "x")
    world.mark()
    stale = tuple(TaskId(name) for name in ("t1", "t2", "gone"))
    assert world.do(tend(world.keys, (), stale)) == Tended(armed=0, dropped=2, purged=0)
    assert world.changes() == {
        "grid:due": {"t2": None, "gone": None},
        "grid:clients": {"t2": None, "gone": None},
        "task:gone:body": None,
        "task:t2 ttl": 600,
        "task:t2:out ttl": 600,
        "grid:events": [
            ("repaired", "t2", "", "", "due without a task"),
            ("repaired", "gone", "", "", "due without a task"),
        ],
        **COUNTED,
    }


def test_retention_ends(world: World) -> None:
    world.seed(seed.pending("t0"), seed.ended("t1"), seed.ended("t2", "dead"))
    world.tick(592_000)
    assert world.do(tend(world.keys, ())) == Tended(armed=0, dropped=0, purged=1)
    found = world.changes()
    del found["grid:totals"]
    assert found == {"grid:finished": None, "task:t1": None, "task:t1:out": None}
    world.tick(7 * 86_400_000)
    assert world.do(tend(world.keys, ())).purged == 1
    assert [key for key in world.dump() if "t2" in key] == []


def test_so_many_at_once(world: World) -> None:
    world.seed(*(seed.ended(f"t{i}") for i in range(5)), seed.pending("t9"))
    world.tick(600_000)
    assert [world.do(tend(world.keys, (), most=3)).purged for _ in range(3)] == [3, 2, 0]


def test_an_open_task_is_never_purged(world: World) -> None:
    world.seed(seed.pending("t1"))
    world.client.zadd("grid:finished", {"t1": NOW_MS})
    assert world.do(tend(world.keys, ())).purged == 1
    assert world.hash("task:t1")["state"] == "pending"


def test_bytes_of_nothing_are_none(world: World) -> None:
    world.seed(seed.fields("grid:totals", queued_bytes=77))
    world.do(tend(world.keys, ()))
    assert world.changes() == {"grid:totals": {"queued_bytes": "0", **COUNTED["grid:totals"]}}


def test_bytes_that_are_miscounted_are_counted_anew_while_tasks_are_open(world: World) -> None:
    """A hash that somebody has deleted, a script stopped behind its commit: on a grid that is never
    idle it would add up, until requests are refused for nothing."""
    world.seed(seed.pending("t1"), seed.worker(tasks=("t2",)), seed.running("t2"), seed.ended("t3"))
    world.client.zadd("grid:due", {"t3": 5, "gone": 5})
    world.do(tend(world.keys, ()))
    world.client.hincrby("grid:totals", "queued_bytes", 700)
    world.tick(59_999)
    world.do(tend(world.keys, ()))
    assert world.hash("grid:totals")["queued_bytes"] == "714"
    world.tick(1)
    world.do(tend(world.keys, ()))
    assert world.hash("grid:totals")["queued_bytes"] == "14"


def test_no_pass_counts_without_bound(world: World) -> None:
    world.client.zadd("grid:due", {f"t{i}": "inf" for i in range(2_001)})
    world.client.hset("grid:totals", "queued_bytes", "7")
    world.do(tend(world.keys, ()))
    assert world.hash("grid:totals")["queued_bytes"] == "7"
    world.client.zrem("grid:due", "t0")
    world.do(tend(world.keys, ()))
    assert world.hash("grid:totals")["queued_bytes"] == "0"


def test_queue_entries_that_no_hash_confirms_are_dropped(world: World) -> None:
    world.seed(
        seed.pending("t1", queue=OWN), seed.pending("t2", queue=OWN),
        seed.pending("gone", queue=OWN),
        seed.fields("task:t2", queue=SHARED),
    )  # fmt: skip
    world.client.delete("task:gone")
    world.mark()
    asked = tuple(TaskId(name) for name in ("t1", "t2", "gone", "never"))
    assert world.do(drop_queued(world.keys, Queue(OWN), asked)) == 2
    found = world.changes()
    assert found[OWN] == {"t2": None, "gone": None}
    assert found["task:gone:body"] is None
    assert found["grid:due"] == {"gone": None}


def test_runs_of_the_dead_that_no_hash_confirms_are_dropped(world: World) -> None:
    world.seed(
        seed.worker(lease_ms=-1, tasks=("t1", "t2", "gone")), seed.running("t1"),
        seed.pending("t2"),
    )  # fmt: skip
    asked = tuple(TaskId(name) for name in ("t1", "t2", "gone"))
    assert world.do(drop_held(world.keys, WorkerId("esxi"), asked)) == 2
    assert world.changes() == {
        "worker:esxi:tasks": {"-t2", "-gone"},
        "grid:events": [
            ("repaired", "t2", "esxi", "", "not run here"),
            ("repaired", "gone", "esxi", "", "not run here"),
        ],
    }
