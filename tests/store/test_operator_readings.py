"""What is read for an operator: one task's story, lists, events backwards, usage, the inventory."""

from __future__ import annotations

from typing import Any

from cogrid.model.chat import Claimed, Delta, End, Moved, Reset
from cogrid.model.names import Queue, TaskId, WorkerId
from cogrid.model.task import State
from cogrid.rules.consistency import inconsistencies
from cogrid.store.events import read_before
from cogrid.store.inventory import read_inventory
from cogrid.store.snapshot import read_snapshot
from cogrid.store.stories import read_outline, read_records, read_story
from cogrid.store.task_lists import Listing, read_body_sizes, read_listed, read_queued
from cogrid.store.usage import Used, read_usage
from tests.build import NOW_MS
from tests.store import seed
from tests.store.seed import OWN, SHARED
from tests.store.world import World

P, Q, R, W, D, X = (TaskId(name) for name in ("pp", "qq", "rr", "ww", "dd", "xx"))


def test_a_waiting_task_with_all_that_stands_about_it(world: World) -> None:
    world.seed(
        seed.pending(P, seq=1),
        seed.pending(
            Q, seq=2, turn=2, why="domain general: no rule; model gemma3:1b: as asked", key="k1",
            followers="c1:1 c1:2", on_close="grace",
        ),
    )  # fmt: skip
    story = world.store.read(read_story(world.keys, Q))
    assert story is not None
    record = story.record
    assert (record.task.state, story.place, story.log) == (State.PENDING, 2, ())
    assert record.why == "domain general: no rule; model gemma3:1b: as asked"
    assert (record.api_key, record.followers, record.on_close) == ("k1", 2, "grace")
    assert (record.client, record.size_bytes) == (True, len(seed.BODY))
    assert (record.max_attempts, record.max_recoveries, record.keep_ms) == (3, 3, 600_000)
    assert (story.due_ms, story.wanted_until_ms) == (NOW_MS + 299_000, NOW_MS + 60_000)
    assert story.kept_until_ms is None


def test_a_task_that_may_wait_for_ever_is_never_due(world: World) -> None:
    world.seed(seed.pending(P, due_ms=None, client=0))
    story = world.store.read(read_story(world.keys, P))
    assert story is not None
    assert (story.due_ms, story.wanted_until_ms) == (None, None)


def test_an_ended_task_says_until_when_it_is_kept(world: World) -> None:
    world.seed(seed.ended(D), seed.ended(X, "dead"))
    done = world.store.read(read_story(world.keys, D))
    dead = world.store.read(read_story(world.keys, X))
    assert done is not None
    assert dead is not None
    assert done.kept_until_ms == NOW_MS - 8_000 + 600_000
    assert dead.kept_until_ms == NOW_MS - 8_000 + 7 * 86_400_000
    assert isinstance(done.log[-1].item, End)
    assert world.store.read(read_story(world.keys, TaskId("none"))) is None


def test_the_outline_of_a_log_leaves_the_text_out(world: World) -> None:
    out = world.keys.out(R)

    def say(entry: str, **fields: str) -> None:
        told: dict[Any, Any] = dict(fields)
        world.client.xadd(out, told, id=entry)

    say("0-1", kind="moved", worker="esxi", reason="ghost_pending", queue=SHARED)
    say("100-0", kind="claimed", worker="esxi", queue=SHARED)
    for n in range(1, 40):
        say(f"100-{n}", kind="text", data=seed.text_of(n))
    say("100-40", kind="reset", worker="esxi", reason="zombie_running", queue=OWN)
    say("200-0", kind="claimed", worker="ai-core", queue=OWN)
    say("200-1", kind="text", data=seed.text_of(1))
    found = world.store.read(read_outline(world.keys, R))
    assert found[0].item == Moved("esxi", "ghost_pending", SHARED)
    assert found[1].item == Claimed("esxi", SHARED)
    assert (found[2].id, found[2].item) == ("100-31", Delta("w31"))
    assert [each.item for each in found if isinstance(each.item, Reset)] == [
        Reset("esxi", "zombie_running", OWN)
    ]
    assert [each.id for each in found[-2:]] == ["200-0", "200-1"]
    world.client.delete(out)


def test_records_are_read_in_any_number(world: World) -> None:
    world.seed(seed.pending(P))
    found = world.store.read(read_records(world.keys, (P, Q, P)))
    assert list(found) == [P, Q]
    assert found[Q] is None
    assert world.store.read(read_records(world.keys, ())) == {}


def test_lists_are_bounded_and_say_so(world: World) -> None:
    world.seed(
        seed.pending(P, due_ms=5_000), seed.pending(Q, seq=2, due_ms=None), seed.ended(D),
        seed.ended(X, "dead"),
    )  # fmt: skip
    every = world.store.read(read_listed(world.keys, Listing.OPEN))
    assert every.tasks == ((P, NOW_MS + 5_000), (Q, None))
    assert not every.cut
    first = world.store.read(read_listed(world.keys, Listing.OPEN, 1))
    assert (first.tasks, first.total, first.cut) == (((P, NOW_MS + 5_000),), 2, True)
    ended = world.store.read(read_listed(world.keys, Listing.ENDED))
    dead = world.store.read(read_listed(world.keys, Listing.DEAD))
    assert ([task for task, _ in ended.tasks], [task for task, _ in dead.tasks]) == ([D], [X])
    queued = world.store.read(read_queued(world.keys, (Queue(SHARED), Queue(OWN)), 1))
    assert queued == {SHARED: (P,), OWN: ()}
    sizes = world.store.read(read_body_sizes(world.keys, (X, TaskId("none"))))
    assert sizes == {X: len(seed.BODY), "none": 0}


def test_events_are_read_backwards_page_by_page(world: World) -> None:
    for n in range(1, 8):
        fields: dict[Any, Any] = {"edge": f"e{n}", "task": P, "at_ms": n}
        world.client.xadd(world.keys.events, fields, id=f"{n}000-0")
    page = world.store.read(read_before(world.keys, most=3))
    assert [event.edge for event in page] == ["e7", "e6", "e5"]
    page = world.store.read(read_before(world.keys, page[-1].id, most=3))
    assert [event.edge for event in page] == ["e4", "e3", "e2"]
    page = world.store.read(read_before(world.keys, since_ms=6_000))
    assert [event.edge for event in page] == ["e7", "e6"]


def test_usage_keeps_who_and_what_apart(world: World) -> None:
    day = world.keys.usage("2026-06-07")
    world.client.hset(day, "ada\tk1\tgemma3:1b\tesxi\trequests", 3)
    world.client.hset(day, "bob\t\tgemma3:1b\t\tms", 1500)
    world.client.hset(day, "somebody else's field", 1)
    world.client.pexpire(day, 1000_000)
    found = world.store.read(read_usage(world.keys, ["2026-06-07", "2026-06-06"]))
    assert sorted(found, key=lambda each: each.user) == [
        Used("2026-06-07", "ada", "k1", "gemma3:1b", "esxi", "requests", 3),
        Used("2026-06-07", "bob", "", "gemma3:1b", "", "ms", 1500),
    ]


def test_a_queue_tells_the_spread_of_its_claims(world: World) -> None:
    rate: dict[Any, Any] = {"mean_s": "2.5000", "var": "0.2500"}
    world.seed(seed.pending(P))
    world.client.hset(world.keys.rate(SHARED), mapping=rate)
    world.client.pexpire(world.keys.rate(SHARED), 600_000)
    (queue,) = world.store.read(read_snapshot(world.keys, info=False)).queues
    assert (queue.gap_s, queue.gap_sd_s) == (2.5, 0.5)


def a_grid(world: World) -> None:
    world.seed(
        seed.mark(), seed.worker(tasks=(R,)), seed.pending(P), seed.running(R),
        seed.waiting(W), seed.ended(D), seed.ended(X, "dead"),
    )  # fmt: skip


def test_an_inventory_of_a_grid_that_is_well(world: World) -> None:
    a_grid(world)
    found = world.store.read(read_inventory(world.keys))
    assert [*map(set, (found.open, found.ended, found.dead))] == [{P, R, W}, {D}, {X}]
    assert found.queued == {SHARED: (P,)}
    assert found.held == {WorkerId("esxi"): (R,)}
    assert (found.unlisted, found.cut) == ((), False)
    assert found.kept[P].ttl_ms is None
    assert found.kept[W].last == "reset"
    assert found.kept[D].ttl_ms is not None
    assert inconsistencies(found) == ()


def test_an_inventory_shows_what_is_broken(world: World) -> None:
    a_grid(world)
    world.client.zrem(world.keys.queue(SHARED), P)
    world.client.zadd(world.keys.queue(OWN), {"nobody": 1})
    world.client.delete(world.keys.body(W))
    world.client.srem(world.keys.worker_tasks("esxi"), R)
    found = inconsistencies(world.store.read(read_inventory(world.keys)))
    assert {(each.kind, each.subject) for each in found} == {
        ("body", W),
        ("empty_queue", SHARED),
        ("misplaced", P),
        ("misplaced", R),
        ("unlisted_queue", OWN),
    }
