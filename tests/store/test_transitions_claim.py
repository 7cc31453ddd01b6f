"""claim and append: the whole state before, one call, the whole state after."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.model.names import TaskId, Token, WorkerId
from cogrid.model.task import Kind
from cogrid.store.tasks import Appended, Claim, Claimed, Handed, append, claim
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import LAST, MODEL, OWN, SHARED, score
from tests.store.world import World

T1, TOKEN = TaskId("t1"), Token("esxi1:1:1")
RUN = NOW_MS - 3_000
OTHER = "tasks:cpu:shared:llama3.2:1b"


def claimed(world: World, k: int = 1, free: int = 1, *queues: str | tuple[str, bool],
            instance: str = "esxi1", worker: str = "esxi") -> Claimed:  # fmt: skip
    named = tuple(q if isinstance(q, tuple) else (q, False) for q in queues or (OWN, SHARED))
    return world.do(claim(world.keys, Claim(WorkerId(worker), instance, k, free, named, 90_000)))


def ids(got: Claimed) -> tuple[str, ...]:
    return tuple(task.id for task in got.tasks)


def test_a_claim_takes_the_head_at_once_with_its_token(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1", announce=1, followers="c1:1"),
               seed.pending("t2", turn=2, seq=2))  # fmt: skip
    assert claimed(world) == Claimed("ok", (
        Handed(T1, TOKEN, NOW_MS, Kind.CHAT, MODEL, True, 0, 0, seed.BODY),
    ))  # fmt: skip
    assert world.changes() == {
        "task:t1": {
            "state": "running", "token": TOKEN, "worker": "esxi", "run": str(NOW_MS), "n": "0",
            "claimed_at": str(NOW_MS),
        },
        "task:t1:out": [(f"{NOW_MS}-0", {"kind": "claimed", "worker": "esxi", "queue": SHARED})],
        "worker:esxi": {"polled_at": str(NOW_MS), "claim": "1"},
        "worker:esxi:tasks": {"+t1"},
        SHARED: {"t1": None},
        f"turns:{SHARED}": {"v:0": "1"},
        f"wake:{SHARED}": {"armed": NOW_MS},
        f"rate:{SHARED}": {"mean_s": "5.0000", "var": "0.0000"},
        f"rate:{SHARED} ttl": 600,
        "grid:due": {"t1": NOW_MS + 90_000},
        "grid:queues": {SHARED: NOW_MS},
        "grid:events": [("claimed", "t1", "esxi", TOKEN, SHARED)],
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }  # fmt: skip


def test_the_last_claim_of_a_queue_leaves_nothing_of_it(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1"))
    assert ids(claimed(world)) == ("t1",)
    found = world.changes()
    gone = [key for key, change in found.items() if change is None]
    assert gone == ["grid:queues", SHARED, f"turns:{SHARED}", f"wake:{SHARED}"]


def test_a_claim_sent_again_gives_the_same_and_nothing_new(world: World) -> None:
    world.seed(seed.worker(slots=3), *(seed.pending(f"t{i}", turn=i, seq=i) for i in range(1, 5)))
    first = claimed(world, 1, 2)
    assert ids(first) == ("t1", "t2")
    world.mark()
    assert claimed(world, 1, 2) == first
    assert world.changes() == {}


def test_a_number_is_remembered_even_if_it_took_nothing(world: World) -> None:
    """A late copy of an unsuccessful claim must not take what its worker would not know of."""
    world.seed(seed.worker())
    assert claimed(world, 4) == Claimed("ok")
    assert world.changes() == {"worker:esxi": {"polled_at": str(NOW_MS), "claim": "4"}}
    world.seed(seed.pending("t1"))
    assert claimed(world, 4) == claimed(world, 3) == Claimed("ok")
    assert ids(claimed(world, 5)) == ("t1",)


def test_a_claim_takes_half_of_what_waits_and_no_more_than_is_free(world: World) -> None:
    world.seed(seed.worker(slots=4, tasks=("r1",)), seed.running("r1"),
               *(seed.pending(f"t{i}", turn=i, seq=i) for i in range(1, 10)))  # fmt: skip
    assert ids(claimed(world, 2, 2)) == ("t1", "t2")
    assert ids(claimed(world, 3, 9)) == ("t3",)
    assert ids(claimed(world, 4, 9)) == ()


def test_half_of_three_is_two(world: World) -> None:
    world.seed(seed.worker(slots=9), *(seed.pending(f"t{i}", turn=i, seq=i) for i in (1, 2, 3)))
    assert ids(claimed(world, 1, 9)) == ("t1", "t2")


def test_a_revoked_token_takes_a_slot(world: World) -> None:
    world.seed(seed.worker(slots=1, revoked=("esxi1:1:1",)), seed.pending("t1"))
    assert claimed(world, 2) == Claimed("ok")
    assert world.changes() == {"worker:esxi": {"polled_at": str(NOW_MS), "claim": "2"}}


def test_a_claim_with_nothing_free_only_says_that_it_polled(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1"))
    assert claimed(world, 1, 0) == Claimed("ok")
    assert world.changes() == {"worker:esxi": {"polled_at": str(NOW_MS), "claim": "1"}}


@pytest.mark.parametrize(
    ("seeded", "status", "polls"),
    [
        (seed.worker("ai-core"), "unknown", False),
        (seed.worker(instance="esxi2"), "superseded", False),
        (seed.worker(lease_ms=-1), "renew", False),
        (seed.worker(lease_ms=None), "renew", False),
        (seed.worker(state="starting"), "not_ready", True),
        (seed.worker(state="away"), "not_ready", True),
        (seed.worker(wanted='{"state":"drain"}'), "not_ready", True),
    ],
)
def test_who_may_not_claim(world: World, seeded: seed.Seed, status: str, polls: bool) -> None:
    world.seed(seeded, seed.pending("t1"))
    assert claimed(world) == Claimed(status)
    stamp = {"worker:esxi": {"polled_at": str(NOW_MS), "claim": "1"}}
    assert world.changes() == (stamp if polls else {})


def test_a_lease_counts_to_its_last_moment(world: World) -> None:
    world.seed(seed.worker(lease_ms=0), seed.pending("t1"))
    assert ids(claimed(world)) == ("t1",)


def test_an_entry_without_its_hash_is_dropped_with_what_it_left(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1"))
    world.client.delete("task:t1")
    world.mark()
    assert claimed(world) == Claimed("ok")
    found = world.changes()
    assert found.pop("worker:esxi")
    assert found.pop("grid:events") == [("repaired", "t1", "", "", f"not in {SHARED}")]
    assert set(found.values()) == {None}
    assert set(found) == {
        SHARED, f"turns:{SHARED}", f"wake:{SHARED}", "grid:queues", "grid:due", "grid:clients",
        "task:t1:body",
    }  # fmt: skip


@pytest.mark.parametrize("told", [{"state": "running"}, {"queue": OTHER}, {"state": "waiting"}])
def test_an_entry_that_the_hash_denies_is_dropped(world: World, told: dict[str, str]) -> None:
    world.seed(seed.worker(), seed.pending("t1"), seed.pending("t2", turn=2, seq=2),
               seed.fields("task:t1", **told))  # fmt: skip
    assert ids(claimed(world)) == ("t2",)
    assert world.hash("task:t1")["state"] == told.get("state", "pending")


def test_a_head_whose_end_was_never_committed_ends_first(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1"), seed.pending("t2", turn=2, seq=2))
    end: dict[Any, Any] = {"kind": "end", "state": "cancelled", "message": "m", "code": "cancelled"}
    world.client.xadd("task:t1:out", end, id=f"0-{LAST}")
    assert ids(claimed(world)) == ("t2",)
    assert world.hash("task:t1")["state"] == "cancelled"
    assert world.client.xlen("task:t1:out") == 1
    assert world.client.ttl("task:t1") > 0


def test_a_claim_that_was_stopped_does_not_hold_up_the_next(world: World) -> None:
    """Its run number stands in the log though the hash does not know it."""
    world.seed(seed.worker(), seed.pending("t1", run=0))
    claim_of_before: dict[Any, Any] = {"kind": "claimed", "worker": "x", "queue": SHARED}
    world.client.xadd("task:t1:out", claim_of_before, id=f"{NOW_MS + 5}-0")
    got = claimed(world)
    assert [(task.id, task.run) for task in got.tasks] == [("t1", NOW_MS + 6)]
    assert world.hash("task:t1")["run"] == str(NOW_MS + 6)


def test_bands_come_before_everything(world: World) -> None:
    world.seed(
        seed.worker(), seed.pending("t1", band=1),
        seed.pending("t2", queue=OTHER, model="llama3.2:1b"),
    )  # fmt: skip
    assert ids(claimed(world, 1, 1, (SHARED, True), (OTHER, False))) == ("t2",)


def test_a_loaded_model_comes_before_the_longest_unserved_queue(world: World) -> None:
    world.seed(seed.worker(slots=9), seed.pending("t1"),
               seed.pending("t2", queue=OTHER, model="llama3.2:1b"))  # fmt: skip
    world.client.zadd("grid:queues", {SHARED: NOW_MS - 100, OTHER: NOW_MS - 9_000})
    assert ids(claimed(world, 1, 1, (SHARED, True), (OTHER, False))) == ("t1",)


def test_a_queue_that_starves_comes_before_a_loaded_model(world: World) -> None:
    world.seed(seed.worker(slots=9), seed.pending("t1"),
               seed.pending("t2", queue=OTHER, model="llama3.2:1b"))  # fmt: skip
    world.client.zadd("grid:queues", {SHARED: NOW_MS - 100, OTHER: NOW_MS - 30_001})
    assert ids(claimed(world, 1, 1, (SHARED, True), (OTHER, False))) == ("t2",)


def test_of_equals_the_one_served_longest_ago_is_next(world: World) -> None:
    world.seed(seed.worker(slots=9), seed.pending("t1"),
               seed.pending("t2", queue=OTHER, model="llama3.2:1b"))  # fmt: skip
    world.client.zadd("grid:queues", {SHARED: NOW_MS - 100, OTHER: NOW_MS - 200})
    assert ids(claimed(world, 1, 1, SHARED, OTHER)) == ("t2",)


def test_avoid_is_no_rule_for_a_claim(world: World) -> None:
    world.seed(seed.worker(), seed.pending("t1", avoid="esxi"))
    assert ids(claimed(world)) == ("t1",)


def test_a_solo_task_waits_until_its_worker_runs_nothing(world: World) -> None:
    world.seed(
        seed.worker(slots=3, tasks=("r1",)), seed.running("r1"), seed.pending("t1", solo=1),
        seed.pending("t2", turn=2, seq=2),
    )  # fmt: skip
    assert claimed(world, 2, 2) == Claimed("ok")
    assert f"wake:{SHARED}" not in world.changes()


def test_a_solo_task_is_taken_alone_and_stays_alone(world: World) -> None:
    world.seed(seed.worker(slots=3), seed.pending("t1", solo=1),
               *(seed.pending(f"t{i}", turn=i, seq=i) for i in range(2, 7)))  # fmt: skip
    assert ids(claimed(world, 1, 3)) == ("t1",)
    world.mark()
    assert claimed(world, 2, 3) == Claimed("ok")
    assert world.changes() == {"worker:esxi": {"claim": "2"}}


def test_a_task_of_a_second_run_is_numbered_later(world: World) -> None:
    """Not before the last run even if the clock went back, and the first text counts anew."""
    world.seed(seed.worker(), seed.pending("t1", run=NOW_MS + 60_000, first_at=NOW_MS - 1))
    assert [task.run for task in claimed(world).tasks] == [NOW_MS + 60_001]
    assert "first_at" not in world.hash("task:t1")
    assert world.changes()["grid:events"] == [("claimed_again", "t1", "esxi", TOKEN, SHARED)]


def test_the_rate_follows_the_gaps_between_claims(world: World) -> None:
    world.seed(seed.worker(slots=9), *(seed.pending(f"t{i}", turn=i, seq=i) for i in range(1, 4)))
    claimed(world, 1)
    world.tick(10_000)
    claimed(world, 2)
    assert world.hash(f"rate:{SHARED}") == {"mean_s": "6.0000", "var": "4.0000"}


# --- append -----------------------------------------------------------------------------------


def appended(world: World, n: int, *pieces: str, token: str = TOKEN) -> Appended:
    data = tuple(piece.encode() for piece in pieces)
    return world.do(append(world.keys, T1, Token(token), n, data, 30_000))


def text(n: int, data: str) -> tuple[str, dict[str, str]]:
    return f"{RUN}-{n}", {"kind": "text", "data": data}


def test_text_reaches_the_log_in_order(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", followers="c1:1 c1:2"))
    assert appended(world, 1, "a", "b") == Appended("ok", 2)
    assert world.changes() == {
        "task:t1": {"n": "2", "first_at": str(NOW_MS)},
        "task:t1:out": [text(1, "a"), text(2, "b")],
        "grid:due": {"t1": NOW_MS + 30_000},
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
    }


def test_text_that_is_there_is_not_said_twice(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=2, first_at=NOW_MS - 1))
    assert appended(world, 1, "a", "b") == Appended("ok", 2)
    assert world.changes() == {}
    assert appended(world, 2, "b", "c") == Appended("ok", 3)
    assert world.changes() == {
        "task:t1": {"n": "3"},
        "task:t1:out": [text(3, "c")],
        "grid:due": {"t1": NOW_MS + 30_000},
    }


def test_a_gap_is_told(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=1))
    assert appended(world, 3, "c") == Appended("gap", 1)
    assert world.changes() == {}


@pytest.mark.parametrize(
    "seeded",
    [seed.running("t2"), seed.running("t1", token="esxi1:2:1"), seed.pending("t1"),
     seed.ended("t1"), seed.running("t1", token="esxi2:1:1")],
)  # fmt: skip
def test_a_run_that_is_no_longer_its_own_is_lost(world: World, seeded: seed.Seed) -> None:
    world.seed(seed.worker(tasks=("t1",)), seeded)
    assert appended(world, 1, "a") == Appended("lost")
    assert world.changes() == {}


def test_an_append_that_was_stopped_goes_on(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1"))
    said: dict[Any, Any] = {"kind": "text", "data": "a"}
    world.client.xadd("task:t1:out", said, id=f"{RUN}-1")
    world.mark()
    assert appended(world, 1, "a", "b") == Appended("ok", 2)
    assert world.changes()["task:t1:out"] == [text(2, "b")]


def test_nothing_is_said_behind_an_end_without_commit(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=1))
    end: dict[Any, Any] = {"kind": "end", "state": "cancelled", "message": "m", "code": "cancelled"}
    world.client.xadd("task:t1:out", end, id=f"{RUN}-{LAST}")
    assert appended(world, 2, "b") == Appended("lost")
    assert world.hash("task:t1")["state"] == "cancelled"


def test_nothing_is_said_behind_a_reset_without_commit(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", streamed=0))
    reset: dict[Any, Any] = {"kind": "reset", "worker": "esxi", "reason": "zombie_running",
                             "queue": SHARED}  # fmt: skip
    world.client.xadd("task:t1:out", reset, id=f"{RUN}-1")
    assert appended(world, 1, "a") == Appended("lost")
    told = world.hash("task:t1")
    assert (told["state"], told["queue"], told["recoveries"]) == ("pending", SHARED, "1")
    assert world.dump()[SHARED].value == {"t1": score(turn=0, seq=0)}
    assert world.client.xlen("task:t1:out") == 2
