"""What an operator does to tasks: the whole state before, one call, the whole state after."""

from __future__ import annotations

import pytest

from cogrid.model.names import Queue, TaskId, Token
from cogrid.store.administration import Sent, forget_model, note, purge, requeue, revive
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import BODY, MODEL, OWN, SHARED, score
from tests.store.world import World

T1, TOKEN = TaskId("t1"), Token("esxi1:1:1")
RUN = NOW_MS - 3_000
GPU = Queue(f"tasks:gpu:shared:{MODEL}")
WEEK_S = 7 * 86_400


# --- requeue ----------------------------------------------------------------------------------


def requeued(world: World, token: str | None = TOKEN, queue: str = GPU) -> Sent:
    told = Token(token) if token else None
    return world.do(requeue(world.keys, T1, told, Queue(queue), "ada@box"))


def test_a_run_is_taken_back_and_goes_again_as_the_next_one(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", followers="c1:1", recoveries=1))
    assert requeued(world) == Sent("ok", queue=GPU)
    reset = {"kind": "reset", "worker": "esxi", "reason": "operator", "queue": GPU}
    assert world.changes() == {
        "task:t1": {
            "state": "pending", "queue": GPU, "token": "", "last_token": "",
            "queued_at": str(NOW_MS), "reason": "operator", "avoid": "esxi",
        },
        "task:t1:out": [(f"{RUN}-1", reset)],
        GPU: {"t1": score(turn=0, seq=0)},
        f"wake:{GPU}": {"armed": NOW_MS},
        "worker:esxi": {"revoked_at": str(NOW_MS)},
        "worker:esxi:tasks": None,
        "worker:esxi:revoked": {"+esxi1:1:1"},
        "worker:esxi:revoked ttl": 3_618,
        "wake:@esxi": {"t1": NOW_MS},
        "wake:@esxi ttl": 60,
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:queues": {GPU: NOW_MS},
        "grid:events": [("requeued", "t1", "esxi", TOKEN, "by ada@box")],
    }  # fmt: skip


def test_a_back_off_ends(world: World) -> None:
    world.seed(seed.worker(), seed.waiting("t1", due_ms=20_000, followers="c1:1"))
    assert requeued(world, None, SHARED) == Sent("ok", queue=SHARED)
    assert world.changes() == {
        "task:t1": {"state": "pending", "queued_at": str(NOW_MS), "reason": "operator"},
        SHARED: {"t1": score(turn=0, seq=0)},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "wake:@c1": {"t1": NOW_MS},
        "wake:@c1 ttl": 60,
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:queues": {SHARED: NOW_MS},
        "grid:events": [("requeued", "t1", "esxi", "", "by ada@box")],
    }


def test_a_queue_of_one_that_takes_nothing_is_not_for_it(world: World) -> None:
    world.seed(seed.worker(state="away", tasks=("t1",)), seed.running("t1"))
    assert requeued(world, queue=OWN) == Sent("ok", queue=SHARED)


@pytest.mark.parametrize(
    ("seeded", "token", "got"),
    [
        (seed.running("t1", token="esxi1:2:1"), TOKEN, Sent("moved_on", state="running")),
        (seed.pending("t1"), TOKEN, Sent("moved_on", state="pending")),
        (seed.pending("t1"), None, Sent("moved_on", state="pending")),
        (seed.running("t1"), None, Sent("moved_on", state="running")),
        (seed.ended("t1", last_token=TOKEN), TOKEN, Sent("moved_on", state="done")),
        (seed.running("t1", texts=1), TOKEN, Sent("said")),
        (lambda client, keys: None, TOKEN, Sent("unknown")),
    ],
)
def test_what_is_no_longer_so_stays(
    world: World, seeded: seed.Seed, token: str | None, got: Sent
) -> None:
    world.seed(seed.worker(), seeded)
    assert requeued(world, token) == got
    assert world.changes() == {}


def test_text_that_nobody_has_seen_forbids_nothing(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", texts=2, streamed=0))
    assert requeued(world) == Sent("ok", queue=GPU)


# --- revive -----------------------------------------------------------------------------------


def revived(world: World, queue: str = SHARED, most: int = 10, most_bytes: int = 1_000) -> Sent:
    return world.do(revive(world.keys, T1, Queue(queue), most, most_bytes, "ada@box"))


def test_a_dead_letter_waits_again_with_its_body_and_without_its_past(world: World) -> None:
    world.seed(
        seed.worker(),
        seed.ended("t1", "dead", recoveries=3, attempts=1, solo=1, avoid="esxi", error="gave up",
                   code="recoveries_spent", followers="c1:1", first_at=NOW_MS - 9_000),
    )  # fmt: skip
    assert revived(world) == Sent("ok", queue=SHARED)
    assert world.changes() == {
        "task:t1": {
            "state": "pending", "queued_at": str(NOW_MS), "last_token": "", "attempts": "0",
            "recoveries": "0", "solo": "0", "avoid": "", "reason": "operator", "error": "",
            "code": "", "client": "0", "on_close": "keep", "followers": "", "finished_at": None,
            "first_at": None,
        },
        "task:t1 ttl": None,
        "task:t1:out": None,
        "task:t1:body ttl": None,
        SHARED: {"t1": score(turn=1, seq=1)},
        f"turns:{SHARED}": {"f:0:ada": "2", "seq": "1"},
        f"wake:{SHARED}": {"armed": NOW_MS},
        "grid:dead": None,
        "grid:due": {"t1": NOW_MS + 300_000},
        "grid:queues": {SHARED: NOW_MS},
        "grid:totals": {"queued_bytes": str(len(BODY))},
        "grid:events": [("revived", "t1", "", "", "by ada@box")],
    }  # fmt: skip


def without_body(client: object, keys: object) -> None:
    client.delete("task:t1:body")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("seeded", "most", "most_bytes", "got"),
    [
        ((), 10, 1_000, Sent("unknown")),
        ((seed.ended("t1"),), 10, 1_000, Sent("moved_on", state="done")),
        ((seed.pending("t1"),), 10, 1_000, Sent("moved_on", state="pending")),
        ((seed.ended("t1", "dead"), without_body), 10, 1_000, Sent("no_body")),
        ((seed.ended("t1", "dead"), seed.pending("t2")), 1, 1_000, Sent("full", amount=1)),
        (
            (seed.ended("t1", "dead"), seed.pending("t2")), 10, 2 * len(BODY) - 1,
            Sent("bytes", amount=len(BODY)),
        ),
    ],
)  # fmt: skip
def test_what_cannot_wait_again_stays(
    world: World, seeded: tuple[seed.Seed, ...], most: int, most_bytes: int, got: Sent
) -> None:
    world.seed(*seeded)
    assert revived(world, most=most, most_bytes=most_bytes) == got
    assert world.changes() == {}


# --- purge ------------------------------------------------------------------------------------


def test_what_has_ended_is_dropped(world: World) -> None:
    world.seed(seed.ended("t1"), seed.ended("t2", "failed"), seed.ended("t3"))
    assert world.do(purge(world.keys, (T1, TaskId("t2")), dead=False, least_ms=8_000)) == 2
    assert world.changes() == {
        "task:t1": None, "task:t1:out": None, "task:t2": None, "task:t2:out": None,
        "grid:finished": {"t1": None, "t2": None},
    }  # fmt: skip


def test_dead_letters_are_dropped_with_their_bodies(world: World) -> None:
    world.seed(seed.ended("t1", "dead"))
    assert world.do(purge(world.keys, (T1,), dead=True, least_ms=0)) == 1
    assert world.changes() == {
        "task:t1": None, "task:t1:out": None, "task:t1:body": None, "grid:dead": None,
    }  # fmt: skip


def test_what_is_open_or_fresh_or_in_the_other_list_stays(world: World) -> None:
    world.seed(seed.pending("t1"), seed.ended("t2"), seed.ended("t3", "dead"))
    ids = tuple(TaskId(f"t{n}") for n in range(1, 5))
    assert world.do(purge(world.keys, ids, dead=False, least_ms=8_001)) == 0
    assert world.do(purge(world.keys, (T1, TaskId("t3")), dead=False, least_ms=0)) == 0
    assert world.changes() == {}


# --- note -------------------------------------------------------------------------------------


def test_an_operators_deed_is_an_event(world: World) -> None:
    world.do(note(world.keys, "task cancel: 2 tasks by ada@box", worker="esxi"))
    told = ("operator", "", "esxi", "", "task cancel: 2 tasks by ada@box")
    assert world.changes() == {"grid:events": [told]}


def test_a_model_is_known_no_more(world: World) -> None:
    world.seed(seed.home(), seed.home("other"))
    assert world.do(forget_model(world.keys, MODEL))
    assert not world.do(forget_model(world.keys, MODEL))
    assert world.changes() == {"grid:models": {MODEL: None}}
