"""attach, detach, renew-clients and limit: the whole state before, one call, the whole after."""

from __future__ import annotations

import pytest

from cogrid.model.names import TaskId
from cogrid.model.task import OnClose
from cogrid.store.clients import (
    Attached,
    Counted,
    Followed,
    attach,
    detach,
    limit,
    renew_clients,
)
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import LAST
from tests.store.world import World

T1 = TaskId("t1")


def attached(world: World, follower: str = "c1:1") -> Attached:
    return world.do(attach(world.keys, T1, follower, 60_000))


def detached(world: World, follower: str = "c1:1") -> Attached:
    return world.do(detach(world.keys, T1, follower))


def test_one_more_listens(world: World) -> None:
    world.seed(seed.pending("t1", followers="c1:1"))
    world.client.zadd("grid:clients", {"t1": NOW_MS + 5})
    world.mark()
    assert attached(world, "c2:1") == Attached("ok", "pending")
    assert world.changes() == {
        "task:t1": {"followers": "c1:1 c2:1"},
        "grid:clients": {"t1": NOW_MS + 60_000},
    }


def test_the_same_connection_counts_once(world: World) -> None:
    world.seed(seed.pending("t1", followers="c1:11"))
    attached(world)
    attached(world)
    assert world.hash("task:t1")["followers"] == "c1:11 c1:1"


def test_watching_gives_no_lease_to_a_task_that_had_none(world: World) -> None:
    world.seed(seed.running("t1", client=0))
    assert attached(world) == Attached("ok", "running")
    assert world.changes() == {"task:t1": {"followers": "c1:1"}}


def test_watching_what_is_over_gives_no_lease(world: World) -> None:
    world.seed(seed.ended("t1"))
    assert attached(world) == Attached("ok", "done")
    assert world.changes() == {"task:t1": {"followers": "c1:1"}}


def test_nobody_listens_to_what_is_not_there(world: World) -> None:
    assert attached(world) == detached(world) == Attached("unknown")
    assert world.changes() == {}


def test_the_last_one_to_leave_cancels(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", followers="c1:1 c1:2"))
    assert detached(world, "c1:1") == Attached("ok", "running")
    assert world.changes() == {"task:t1": {"followers": "c1:2"}}
    assert detached(world, "c1:2") == Attached("cancelled", "running")
    told = world.hash("task:t1")
    assert (told["state"], told["code"], told["error"]) == (
        "cancelled", "cancelled", "the client left",
    )  # fmt: skip
    assert world.dump()["worker:esxi:revoked"].value == {"esxi1:1:1"}


@pytest.mark.parametrize("rule", [OnClose.GRACE, OnClose.KEEP])
def test_a_task_may_outlive_its_listeners(world: World, rule: OnClose) -> None:
    world.seed(seed.pending("t1", followers="c1:1", on_close=rule.value))
    assert detached(world) == Attached("ok", "pending")
    assert world.changes() == {"task:t1": {"followers": ""}}


def test_a_detach_takes_exactly_its_own(world: World) -> None:
    """A late copy, or another connection of the same coordinator, ends nothing."""
    world.seed(seed.pending("t1", followers="c1:11"))
    assert detached(world, "c1:1") == Attached("ok", "pending")
    assert world.changes() == {}


def test_leaving_what_is_over_changes_nothing_else(world: World) -> None:
    world.seed(seed.ended("t1", followers="c1:1"))
    assert detached(world) == Attached("ok", "done")
    assert world.changes() == {"task:t1": {"followers": ""}}


def test_an_end_without_commit_is_completed_and_not_cancelled(world: World) -> None:
    world.seed(seed.worker(tasks=("t1",)), seed.running("t1", followers="c1:1"))
    world.client.xadd("task:t1:out", {"kind": "end", "state": "done"}, id=f"{NOW_MS}-{LAST}")
    assert detached(world) == Attached("ok", "done")
    assert world.client.xlen("task:t1:out") == 2


def test_a_coordinator_hears_what_it_may_have_missed(world: World) -> None:
    world.seed(
        seed.pending("t1"), seed.running("t2", texts=2), seed.ended("t3"),
        seed.pending("t4", client=0),
    )  # fmt: skip
    world.client.zadd("grid:clients", {"t1": NOW_MS + 5, "t2": NOW_MS + 5})
    world.mark()
    asked = tuple(TaskId(name) for name in ("t3", "t2", "gone", "t1", "t4"))
    assert world.do(renew_clients(world.keys, asked, 60_000)) == (
        Followed("done", f"{NOW_MS - 9_000}-{LAST}"),
        Followed("running", f"{NOW_MS - 3_000}-2"),
        Followed("", ""),
        Followed("pending", ""),
        Followed("pending", ""),
    )
    stamp = NOW_MS + 60_000
    assert world.changes() == {"grid:clients": {"t1": stamp, "t2": stamp}}


def test_a_key_may_ask_so_often_a_minute(world: World) -> None:
    ask = limit(world.keys, "abc", 2)
    world.tick(20_000)
    assert [world.do(ask), world.do(ask)] == [Counted(True), Counted(True)]
    minute = (NOW_MS + 20_000) // 60_000
    assert world.changes() == {f"limit:abc:{minute}": "2", f"limit:abc:{minute} ttl": 120}
    assert world.do(ask) == Counted(False, retry_after_s=40)
    world.tick(40_000)
    assert world.do(ask) == Counted(True)
