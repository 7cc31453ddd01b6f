"""submit and cancel: the whole state before, one call, the whole state after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cogrid.model.names import Queue, TaskId
from cogrid.model.task import Band, Kind, OnClose
from cogrid.store.tasks import (
    INLINE_BYTES,
    Cancelled,
    Submission,
    Submitted,
    cancel,
    cancel_orphan,
    submit,
    withdraw,
)
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import LAST, MODEL, OWN, SHARED, score
from tests.store.world import RUN_ID, World

T1 = TaskId("t1")
ASKED = Submission(
    id=T1,
    kind=Kind.CHAT,
    model=MODEL,
    queue=Queue(SHARED),
    shared=Queue(SHARED),
    body=seed.BODY,
    user="ada",
)
HASH = {
    "state": "pending", "queue": SHARED, "user": "ada", "band": "0", "size": "7",
    "queue_timeout_ms": "300000", "keep_ms": "600000", "client": "1", "followers": "",
    "submitted_at": str(NOW_MS), "queued_at": str(NOW_MS), "kind": "chat", "model": MODEL,
    "domain": "general", "streamed": "1", "announce": "0", "on_close": "cancel", "key": "",
    "needs": "", "why": "", "max_attempts": "3", "max_recoveries": "3",
}  # fmt: skip


def submitted(world: World, **changed: Any) -> Submitted:
    return world.do(submit(world.keys, replace(ASKED, **changed)))


def test_a_submission_stands_everywhere_it_must(world: World) -> None:
    assert submitted(world, follower="c1:7") == Submitted("new", SHARED, place=1)
    found = world.changes()
    assert {name: found["task:t1"][name] for name in HASH} == {**HASH, "followers": "c1:7"}
    del found["task:t1"]
    assert found == {
        "task:t1:body": '{"q":1}',
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:clients": {"t1": NOW_MS + 60_000},
        SHARED: {"t1": score(turn=1)},
        f"turns:{SHARED}": {"seq": "1", "f:0:ada": "2"},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "grid:queues": {SHARED: NOW_MS},
        "grid:totals": {"queued_bytes": "7", "submitted": "1"},
        "grid:events": [("submitted", "t1", "", "", SHARED)],
    }


def test_a_task_without_limits_has_none(world: World) -> None:
    submitted(world, queue_timeout_ms=0, on_close=OnClose.KEEP, band=Band.BATCH)
    found = world.changes()
    assert found["grid:due"] == {"t1": float("inf")}
    assert "grid:clients" not in found
    assert found["task:t1"]["client"] == "0"
    assert found[SHARED] == {"t1": score(band=2, turn=1)}


def test_a_submission_sent_twice_is_one(world: World) -> None:
    submitted(world)
    world.mark()
    assert submitted(world) == Submitted("exists", SHARED, state="pending")
    assert world.changes() == {}


def test_a_submission_is_told_what_the_one_before_it_asked(world: World) -> None:
    """Two that were under way at once under one id: only this tells the second that its own
    request is another one."""
    submitted(world, fingerprint="first")
    again = submitted(world, fingerprint="second")
    assert again == Submitted("exists", SHARED, state="pending", fingerprint="first")


def test_a_submission_of_an_ended_task_answers_its_state(world: World) -> None:
    world.seed(seed.ended("t1", "failed"))
    assert submitted(world) == Submitted("exists", SHARED, state="failed")
    assert world.changes() == {}


def test_a_body_set_beside_is_taken_over(world: World) -> None:
    body = b"x" * (INLINE_BYTES + 1)
    world.client.set("task:t1:body:mine", body, ex=60)
    world.mark()
    assert submitted(world, body=body, ticket="mine") == Submitted("new", SHARED, place=1)
    found = world.changes()
    assert found["task:t1:body"] == body.decode()
    assert "task:t1:body ttl" not in found
    assert found["task:t1:body:mine"] is None
    assert found["grid:totals"] == {"queued_bytes": str(len(body)), "submitted": "1"}


def test_a_body_set_beside_by_another_is_not_taken_for_ones_own(world: World) -> None:
    """Two submissions under one id, of which one takes the other's place while it waits."""
    large = b"x" * (INLINE_BYTES + 1)
    world.client.set("task:t1:body:mine", b"mine" + large, ex=60)
    world.client.set("task:t1:body:theirs", b"theirs" + large, ex=60)
    assert submitted(world, body=b"mine" + large, ticket="mine").status == "new"
    assert submitted(world, body=b"theirs" + large, ticket="theirs").status == "exists"
    assert world.client.get("task:t1:body") == b"mine" + large
    assert world.client.ttl("task:t1:body") == -1


def test_a_missing_body_is_refused(world: World) -> None:
    assert submitted(world, body=b"x" * (INLINE_BYTES + 1), ticket="mine") == Submitted("no_body")
    assert world.changes() == {}


def test_a_full_queue_refuses(world: World) -> None:
    world.seed(seed.pending("t0"))
    assert submitted(world, queue_max=1) == Submitted("full", amount=1)
    assert world.changes() == {}


def test_too_many_bytes_are_refused(world: World) -> None:
    world.seed(seed.pending("t0"))
    assert submitted(world, bytes_max=13) == Submitted("bytes", amount=7)
    assert world.changes() == {}
    assert submitted(world, bytes_max=14).status == "new"


def test_a_ready_workers_own_queue_takes_it(world: World) -> None:
    world.seed(seed.worker())
    assert submitted(world, queue=Queue(OWN)) == Submitted("new", OWN, place=1)
    found = world.changes()
    assert found[OWN] == {"t1": score(turn=1)}
    assert found["wake:@esxi"] == {"t1": NOW_MS}
    assert found["wake:@esxi ttl"] == 60
    assert f"wake:{OWN}" not in found
    assert found["grid:events"] == [("submitted", "t1", "esxi", "", OWN)]


def test_the_shared_queue_stands_in_for_a_worker_that_cannot(world: World) -> None:
    world.seed(
        seed.worker("starts", state="starting"),
        seed.worker("drains", wanted='{"state":"drain"}'),
        seed.worker("dead", lease_ms=-1),
    )
    for i, name in enumerate(("starts", "drains", "dead", "absent")):
        done = submitted(world, id=TaskId(f"t{i}"), queue=Queue(f"tasks:cpu:{name}"))
        assert done == Submitted("new", SHARED, place=i + 1), name
    assert world.hash("task:t3")["queue"] == SHARED


def test_users_take_turns(world: World) -> None:
    """Behind a backlog of one user, a newcomer is served second."""
    for i in range(5):
        submitted(world, id=TaskId(f"a{i}"))
    assert submitted(world, id=TaskId("b0"), user="bob").place == 2
    assert submitted(world, id=TaskId("urgent"), band=Band.INTERACTIVE, user="eve").place == 3
    assert submitted(world, id=TaskId("b1"), user="bob").place == 5
    batch = submitted(world, id=TaskId("late"), band=Band.BATCH, user="zoe")
    assert batch.place == 9


# --- cancel -----------------------------------------------------------------------------------


END = {
    "kind": "end", "state": "cancelled", "finish_reason": "", "usage": "", "message": "by ada",
    "code": "cancelled", "worker": "",
}  # fmt: skip
OVER = {
    "state": "cancelled", "finished_at": str(NOW_MS), "error": "by ada", "code": "cancelled",
    "last_token": "", "attempts": "0",
}  # fmt: skip


def cancelled(world: World) -> Cancelled:
    return world.do(cancel(world.keys, T1, "by ada"))


def withdrawn(world: World, ticket: str = "mine") -> Cancelled:
    return world.do(withdraw(world.keys, T1, ticket, "by ada"))


def test_a_submission_that_comes_after_its_withdrawal_is_void(world: World) -> None:
    assert withdrawn(world) == Cancelled("unknown")
    assert world.changes() == {"task:t1:withdrawn:mine": "1", "task:t1:withdrawn:mine ttl": 3_600}
    world.mark()
    kept: dict[str, Any] = {"on_close": OnClose.KEEP}
    assert submitted(world, ticket="mine", **kept) == Submitted("withdrawn")
    assert world.changes() == {}
    # The same request once more, by a client who was told to try again.
    assert submitted(world, ticket="again", **kept).status == "new"
    assert submitted(world, ticket="mine", **kept) == Submitted("withdrawn")


def test_a_submission_that_has_arrived_is_withdrawn(world: World) -> None:
    submitted(world, ticket="mine", on_close=OnClose.KEEP)
    assert withdrawn(world) == Cancelled("ok", "pending")
    assert world.hash("task:t1")["state"] == "cancelled"
    assert world.hash("task:t1")["error"] == "by ada"
    assert withdrawn(world) == Cancelled("over", "cancelled")
    world.client.delete("task:t1")
    assert submitted(world, ticket="mine", on_close=OnClose.KEEP) == Submitted("withdrawn")


def test_anothers_submission_under_the_same_id_is_left_alone(world: World) -> None:
    submitted(world, ticket="theirs", on_close=OnClose.KEEP)
    assert withdrawn(world) == Cancelled("unknown")
    assert world.hash("task:t1")["state"] == "pending"


def orphaned(world: World, run_id: str = RUN_ID) -> Cancelled:
    return world.do(cancel_orphan(world.keys, T1, "nobody listens", run_id, 3_000))


def test_a_pending_task_is_cancelled_and_its_turn_comes_back(world: World) -> None:
    world.seed(seed.pending("t1", followers="c1:7 c2:1"), seed.pending("t2", turn=2, seq=2))
    assert cancelled(world) == Cancelled("ok", "pending")
    assert world.changes() == {
        "task:t1": {**OVER, "token": "", "run": "0"},
        "task:t1 ttl": 600,
        "task:t1:out": [(f"0-{LAST}", END)],
        "task:t1:out ttl": 600,
        "task:t1:body": None,
        SHARED: {"t1": None},
        f"turns:{SHARED}": {"f:0:ada": "2"},
        "grid:due": {"t1": None},
        "grid:clients": {"t1": None},
        "grid:finished": {"t1": NOW_MS + 600_000},
        "grid:totals": {"queued_bytes": "7", "cancelled": "1"},
        "grid:events": [("cancelled", "t1", "", "", "cancelled")],
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
        "wake:@c2": {"t1": NOW_MS},
        "wake:@c2 ttl": 60,
    }


def test_the_last_one_of_a_queue_takes_everything_of_it_along(world: World) -> None:
    world.seed(seed.pending("t1"))
    cancelled(world)
    found = world.changes()
    gone = [key for key, change in found.items() if change is None]
    assert gone == [
        "grid:clients", "grid:due", "grid:queues", "task:t1:body", SHARED, f"turns:{SHARED}",
        f"wake:{SHARED}",
    ]  # fmt: skip


def test_a_running_task_is_cancelled_and_its_slot_stays_taken(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=2))
    assert cancelled(world) == Cancelled("ok", "running")
    run = NOW_MS - 3_000
    assert world.changes() == {
        "task:t1": {
            **OVER, "token": "",
        },
        "task:t1 ttl": 600,
        "task:t1:out": [(f"{run}-{LAST}", {**END, "worker": "esxi"})],
        "task:t1:out ttl": 600,
        "task:t1:body": None,
        "worker:esxi": {"revoked_at": str(NOW_MS)},
        "worker:esxi:tasks": None,
        "worker:esxi:revoked": {"+esxi1:1:1"},
        "worker:esxi:revoked ttl": 3_618,
        "wake:@esxi": {"t1": NOW_MS},
        "wake:@esxi ttl": 60,
        "grid:due": None,
        "grid:clients": None,
        "grid:finished": {"t1": NOW_MS + 600_000},
        "grid:totals": {"queued_bytes": "0", "cancelled": "1"},
        "usage:2026-06-07": {
            f"ada\t\t{MODEL}\tesxi\trequests": "1", f"ada\t\t{MODEL}\tesxi\tms": "3000",
        },
        "usage:2026-06-07 ttl": 35 * 86_400,
        "grid:events": [("cancelled", "t1", "esxi", "esxi1:1:1", "cancelled")],
    }  # fmt: skip


def test_a_waiting_task_is_cancelled(world: World) -> None:
    world.seed(seed.worker(), seed.waiting("t1", due_ms=5_000))
    assert cancelled(world) == Cancelled("ok", "waiting")
    found = world.changes()
    assert found["task:t1"]["state"] == "cancelled"
    assert found["grid:due"] is None
    assert "worker:esxi" not in found


def test_what_is_over_stays_over(world: World) -> None:
    world.seed(seed.ended("t1", "done"))
    assert cancelled(world) == Cancelled("over", "done")
    assert world.changes() == {}


def test_an_unknown_task_cannot_be_cancelled(world: World) -> None:
    assert cancelled(world) == Cancelled("unknown")
    assert world.changes() == {}


def test_an_orphan_is_cancelled_once_its_clients_lease_has_run_out(world: World) -> None:
    world.seed(seed.mark(), seed.pending("t1"))
    assert orphaned(world) == Cancelled("moved_on")
    world.tick(59_999)
    world.seed(seed.mark(last_pass_ms=59_000))
    assert orphaned(world) == Cancelled("moved_on")
    world.tick(1)
    assert orphaned(world) == Cancelled("ok", "pending")
    assert world.changes()["task:t1"]["code"] == "orphaned"


def test_no_orphan_is_cancelled_in_doubt(world: World) -> None:
    world.seed(seed.mark(hold_ms=1), seed.pending("t1"))
    world.client.zadd("grid:clients", {"t1": NOW_MS - 1})
    world.mark()
    assert orphaned(world) == Cancelled("held")
    assert orphaned(world, "another server") == Cancelled("held")
    assert world.changes() == {}


def test_a_task_that_nobody_leased_is_no_orphan(world: World) -> None:
    world.seed(seed.mark(), seed.pending("t1", client=0))
    assert orphaned(world) == Cancelled("moved_on")


def test_a_clients_lease_on_nothing_is_dropped(world: World) -> None:
    world.seed(seed.mark())
    world.client.zadd("grid:clients", {"t1": NOW_MS - 1})
    world.client.zadd("grid:due", {"t1": "inf"})
    world.mark()
    assert orphaned(world) == Cancelled("unknown")
    assert world.changes() == {
        "grid:clients": None,
        "grid:due": None,
        "grid:events": [("repaired", "t1", "", "", "client of no task")],
    }
