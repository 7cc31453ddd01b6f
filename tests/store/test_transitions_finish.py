"""finish: the whole state before, one call, the whole state after."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.names import TaskId, Token, WorkerId
from cogrid.store.refusal import StoreError
from cogrid.store.tasks import Claim, Claimed, Finished, Outcome, finish
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import LAST, MODEL, SHARED, score
from tests.store.world import World

T1, TOKEN = TaskId("t1"), Token("esxi1:1:1")
RUN = NOW_MS - 3_000
USAGE = b'{"prompt_tokens":3,"completion_tokens":4,"total_s":1.5}'
DONE = Outcome("done", finish_reason="stop", usage=USAGE)
BACK = Outcome("back")
AGAIN = Outcome("failed", message="engine gone", code="engine_error", retry=True, backoff_ms=2_000)
NEXT = Claim(WorkerId("esxi"), "esxi1", 2, 1, ((SHARED, True),), 90_000)


def finished(world: World, outcome: Outcome = DONE, then: Claim | None = None,
             token: str = TOKEN, worker: str = "esxi", task: TaskId = T1) -> Finished:  # fmt: skip
    return world.do(finish(world.keys, WorkerId(worker), task, Token(token), outcome, then))


def test_an_answer_ends_its_task_and_frees_the_slot(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",), zombies=2),
               seed.running("t1", texts=1, key="k1", followers="c1:1"))  # fmt: skip
    last = Outcome("done", n=2, data=b"end", finish_reason="stop", usage=USAGE)
    assert finished(world, last) == Finished("ok", "done")
    end = {"kind": "end", "state": "done", "finish_reason": "stop", "usage": USAGE.decode(),
           "message": "", "code": "", "worker": "esxi"}  # fmt: skip
    who = f"ada\tk1\t{MODEL}\tesxi\t"
    counts = {who + "requests": "1", who + "tokens": "7", who + "ms": "3000"}
    assert world.changes() == {
        "task:t1": {
            "state": "done", "finished_at": str(NOW_MS), "token": "", "last_token": TOKEN,
            "error": "", "code": "", "attempts": "0",
        },
        "task:t1 ttl": 600,
        "task:t1:out": [(f"{RUN}-2", {"kind": "text", "data": "end"}), (f"{RUN}-{LAST}", end)],
        "task:t1:out ttl": 600,
        "task:t1:body": None,
        "worker:esxi": {"freed_at": str(NOW_MS), "zombies": "0"},
        "worker:esxi:tasks": None,
        "grid:due": None,
        "grid:clients": None,
        "grid:finished": {"t1": NOW_MS + 600_000},
        "grid:totals": {"queued_bytes": "0", "done": "1"},
        "grid:events": [("done", "t1", "esxi", TOKEN, "stop")],
        "usage:2026-06-07": counts,
        "usage:2026-06-07 ttl": 35 * 86_400,
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }  # fmt: skip


def test_a_flood_of_users_does_not_fill_the_day(world: World) -> None:
    """Each new name would be three fields more, for 35 days."""
    day = "usage:2026-06-07"
    known = f"bob\t\t{MODEL}\tesxi\t"
    world.client.hset(day, mapping={f"u{i}\t\tm\tw\trequests": 1 for i in range(14_998)})
    world.client.hset(day, mapping={known + "requests": 1, known + "ms": 1})
    for task, user in (("t1", "ada"), ("t2", "bob"), ("t3", "eve")):
        token = f"esxi1:1:{task}"
        world.seed(seed.worker(tasks=(task,)), seed.running(task, user=user, token=token))
        assert finished(world, task=TaskId(task), token=token).status == "ok"
    counts = world.hash(day)
    others = f"(others)\t\t{MODEL}\tesxi\t"
    assert counts[others + "requests"] == "2"
    assert counts[others + "tokens"] == "14"
    assert (counts[known + "requests"], counts[known + "ms"]) == ("2", "3001")
    assert len(counts) == 15_000 + 3 + 1, "nothing of ada and eve, and bob's first tokens"


def test_an_answer_sent_again_is_told_so(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    finished(world)
    world.mark()
    assert finished(world) == Finished("already", "done")
    assert world.changes() == {}


@pytest.mark.parametrize(
    ("seeded", "state"),
    [
        (seed.running("t1", worker="ai-core", token="ai-core1:1:1"), "running"),
        (seed.pending("t1"), "pending"),
        (seed.ended("t1", "cancelled", last_token=""), "cancelled"),
        (seed.pending("t2"), ""),
    ],
)
def test_a_zombies_late_answer_is_refused(world: World, seeded: seed.Seed, state: str) -> None:
    world.seed(seed.worker(), seeded)
    assert finished(world) == Finished("lost", state)
    assert world.changes() == {}


def test_a_run_that_was_taken_back_is_lost_and_not_already(world: World) -> None:
    """What was reaped has no answer, so a late one must not be told that it counted."""
    world.seed(seed.worker(revoked=(TOKEN,)), seed.pending("t1", run=RUN, last_token=""))
    assert finished(world) == Finished("lost", "pending")


def test_a_report_of_a_revoked_run_confirms_it_and_counts_what_it_cost(world: World) -> None:
    world.seed(seed.worker(revoked=(TOKEN,)), seed.ended("t1", "cancelled", last_token=""))
    assert finished(world, Outcome("lost", usage=USAGE)) == Finished("lost", "cancelled")
    assert world.changes() == {
        "worker:esxi": {"freed_at": str(NOW_MS)},
        "worker:esxi:revoked": None,
        "usage:2026-06-07": {f"ada\t\t{MODEL}\tesxi\ttokens": "7"},
        "usage:2026-06-07 ttl": 35 * 86_400,
    }  # fmt: skip


def test_a_confirmation_makes_no_hash_of_a_worker_that_has_none(world: World) -> None:
    world.seed(seed.worker(revoked=(TOKEN,)), seed.ended("t1", "cancelled", last_token=""))
    world.client.delete("worker:esxi")
    world.mark()
    finished(world, Outcome("lost"))
    assert world.changes() == {"worker:esxi:revoked": None}


def test_a_confirmation_of_a_run_that_is_its_own_takes_nothing(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    assert finished(world, Outcome("lost")) == Finished("lost", "running")
    assert world.changes() == {}


def test_text_that_is_missing_before_the_end_is_asked_for(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=1), seed.pending("t2"))
    late = Outcome("done", n=4, data=b"end")
    assert finished(world, late, NEXT) == Finished("gap", n=1)
    assert world.changes() == {}


def test_text_that_is_there_is_not_said_again_at_the_end(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=2))
    assert finished(world, Outcome("done", n=2, data=b"w2")) == Finished("ok", "done")
    assert [entry[0] for entry in world.changes()["task:t1:out"]] == [f"{RUN}-{LAST}"]


def test_a_failed_attempt_waits_for_its_next_one(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", followers="c1:1"))
    assert finished(world, AGAIN) == Finished("ok", "waiting")
    reset = {"kind": "reset", "worker": "esxi", "reason": "attempt_failed", "queue": ""}
    assert world.changes() == {
        "task:t1": {
            "state": "waiting", "token": "", "last_token": TOKEN, "avoid": "esxi",
            "reason": "attempt_failed", "error": "engine gone", "attempts": "1",
        },
        "task:t1:out": [(f"{RUN}-1", reset)],
        "worker:esxi": {"freed_at": str(NOW_MS)},
        "worker:esxi:tasks": None,
        "grid:due": {"t1": NOW_MS + 2_000},
        "grid:events": [("retried", "t1", "esxi", TOKEN, "engine gone")],
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"attempts": 2}, AGAIN),
        ({"texts": 1}, AGAIN),
        ({}, Outcome("failed", message="engine gone", code="engine_error")),
    ],
)
def test_a_failure_that_no_attempt_mends_is_the_end(world: World, fields: dict[str, Any],
                                                    outcome: Outcome) -> None:  # fmt: skip
    """Attempts used up, text already sent, or an error that will not go away."""
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", **fields))
    assert finished(world, outcome) == Finished("ok", "failed")
    found = world.changes()
    ((entry, end),) = found["task:t1:out"]
    assert entry == f"{RUN}-{LAST}"
    assert (end["state"], end["message"], end["code"]) == ("failed", "engine gone", "engine_error")
    assert found["task:t1"]["attempts"] == str(fields.get("attempts", 0) + 1)
    assert found["worker:esxi:tasks"] is None
    assert "worker:esxi:revoked" not in found


def test_text_of_a_task_that_is_not_streamed_does_not_matter(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=3, streamed=0))
    assert finished(world, AGAIN) == Finished("ok", "waiting")
    assert world.hash("task:t1")["n"] == "0"


def test_what_is_handed_back_counts_nothing_and_is_next(world: World) -> None:
    world.seed(
        seed.worker(tasks=("t1",)), seed.running("t1"), seed.pending("t2", turn=4, seq=1),
        seed.fields(f"turns:{SHARED}", **{"v:0": 3}), seed.no_mark(),
    )  # fmt: skip
    assert finished(world, BACK) == Finished("ok", "pending")
    reset = {"kind": "reset", "worker": "esxi", "reason": "handed_back", "queue": SHARED}
    assert world.changes() == {
        "task:t1": {
            "state": "pending", "token": "", "last_token": TOKEN, "queued_at": str(NOW_MS),
            "reason": "handed_back",
        },
        "task:t1:out": [(f"{RUN}-1", reset)],
        SHARED: {"t1": score(turn=3, seq=0)},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "worker:esxi": {"freed_at": str(NOW_MS)},
        "worker:esxi:tasks": None,
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:events": [("handed_back", "t1", "esxi", TOKEN, "")],
    }  # fmt: skip


def test_what_is_handed_back_from_an_own_queue_goes_to_the_shared_one(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", queue="tasks:cpu:esxi"))
    assert finished(world, BACK) == Finished("ok", "pending")
    assert world.hash("task:t1")["queue"] == SHARED


def test_a_stream_that_is_handed_back_is_broken(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=1))
    back = Outcome("back", message="the worker was stopped")
    assert finished(world, back) == Finished("ok", "failed")
    ((_, end),) = world.changes()["task:t1:out"]
    assert (end["code"], end["message"]) == ("broken_stream", "the worker was stopped")


def test_a_hand_back_sent_again_is_told_so(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    finished(world, BACK)
    world.mark()
    assert finished(world, BACK) == Finished("already", "pending")
    assert world.changes() == {}


def test_the_next_task_comes_with_the_answer_to_the_last(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"), seed.pending("t2"))
    got = finished(world, DONE, NEXT)
    assert (got.status, got.state) == ("ok", "done")
    assert got.claimed is not None
    assert [(task.id, task.token) for task in got.claimed.tasks] == [("t2", "esxi1:2:1")]
    assert world.dump()["worker:esxi:tasks"].value == {"t2"}


@pytest.mark.parametrize("outcome", [DONE, BACK, AGAIN])
def test_the_whole_call_sent_again_gives_the_same_next_task(world: World, outcome: Outcome) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"), seed.pending("t2", turn=0))
    first = finished(world, outcome, NEXT)
    world.mark()
    again = finished(world, outcome, NEXT)
    assert again.status == "already"
    assert again.claimed == first.claimed
    assert first.claimed is not None
    assert len(first.claimed.tasks) == 1
    assert world.changes() == {}


def test_a_claim_behind_a_lost_run_checks_its_instance(world: World) -> None:
    world.seed(seed.worker(instance="esxi2"), seed.pending("t2"))
    assert finished(world, DONE, NEXT) == Finished("lost", "", claimed=Claimed("superseded"))


def test_a_claim_that_is_refused_does_not_hide_behind_the_answer(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    world.client.hset(SHARED, "not", "ours")
    with pytest.raises(StoreError):
        finished(world, DONE, NEXT)
    world.client.delete(SHARED)
    assert finished(world, DONE, NEXT) == Finished("already", "done", claimed=Claimed("ok"))


def test_an_end_that_was_not_committed_counts(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    end: dict[Any, Any] = {"kind": "end", "state": "done", "finish_reason": "stop", "usage": ""}
    world.client.xadd("task:t1:out", end, id=f"{RUN}-{LAST}")
    assert finished(world, DONE) == Finished("already", "done")
    assert world.client.xlen("task:t1:out") == 2
    assert world.client.exists("worker:esxi:tasks") == 0


def test_an_answer_behind_a_reset_that_was_not_committed_does_not_count(world: World) -> None:
    """Clients were told that this run's text is void."""
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    reset: dict[Any, Any] = {"kind": "reset", "worker": "esxi", "reason": "handed_back",
                             "queue": SHARED}  # fmt: skip
    world.client.xadd("task:t1:out", reset, id=f"{RUN}-1")
    assert finished(world, DONE) == Finished("already", "pending")
    assert world.hash("task:t1")["recoveries"] == "0"
    assert world.client.xlen("task:t1:out") == 2


def test_text_of_an_append_that_was_stopped_counts_as_said(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    said: dict[Any, Any] = {"kind": "text", "data": "a"}
    world.client.xadd("task:t1:out", said, id=f"{RUN}-1")
    assert finished(world, BACK) == Finished("ok", "failed")
