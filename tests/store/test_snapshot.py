"""What is read of the grid: in few round trips however much there is, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest
import redis

from cogrid.model.names import TaskId, queue_model
from cogrid.model.snapshot import Server as Facts
from cogrid.model.task import Band, State
from cogrid.model.worker import Offer, OfferState, Wish, WorkerState
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from cogrid.store.keys import Keys
from cogrid.store.reading import Command
from cogrid.store.server_info import server_facts
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_hashes import read_place, read_tasks
from tests.build import NOW_MS
from tests.servers import Server
from tests.store import seed
from tests.store.seed import MODEL, OWN, SHARED
from tests.store.world import World

KEYS = Keys()
SECONDS_FOR_ALL = 8.0
"""On a machine at rest it takes about one; this is for a busy one."""


def counted(store: Store, reading: Generator[list[Command], list[Any], Any]) -> tuple[Any, int]:
    """What a reading gives, and in how many round trips."""
    trips = 0

    def count() -> Generator[list[Command], list[Any], Any]:
        nonlocal trips
        try:
            commands = next(reading)
            while True:
                trips += 1
                commands = reading.send((yield commands))
        except StopIteration as end:
            return end.value

    return store.read(count()), trips


def test_a_snapshot_is_the_whole_grid_at_one_instant(every_server: Server) -> None:
    world = World(every_server.client)
    world.seed(
        seed.mark(), seed.home(), seed.pending("t1"), seed.pending("t2", queue=OWN),
        seed.running("t3"), seed.waiting("t4"), seed.ended("t5"), seed.ended("t6", "dead"),
        seed.fields("grid:totals", done=5, failed=2, cancelled=1),
        seed.worker(
            slots=2, tasks=("t3",), revoked=("esxi1:9:1",), revoked_at=NOW_MS - 500, zombies=1,
            wanted='{"state":"drain","until_ms":0,"by":"ada"}',
            models='[{"name":"gemma3:1b","state":"quarantined","reason":"500"}]',
        ),
        seed.worker("gone", lease_ms=None, registered_at="2026-06-07T02:25:47Z"),
    )  # fmt: skip
    store = Store.connect(parse_address(every_server.url))
    snapshot = store.read(read_snapshot(store.keys, tasks=True, waits=True, stray=True))
    store.close()
    world.client.delete("test:clock")

    assert abs(snapshot.taken_at_ms - time.time() * 1000) < 60_000
    esxi, gone = snapshot.workers
    assert (esxi.id, esxi.known, esxi.lease_until_ms) == ("esxi", True, NOW_MS + seed.LEASE_MS)
    assert (esxi.slots, esxi.busy, esxi.free, esxi.zombies) == (2, 2, 0, 1)
    assert (esxi.tasks, esxi.revoked) == (("t3",), ("esxi1:9:1",))
    assert esxi.state is WorkerState.READY
    assert esxi.wish == Wish("drain", 0, "ada")
    assert esxi.offers == (Offer(MODEL, OfferState.QUARANTINED, reason="500"),)
    assert (gone.id, gone.lease_until_ms, gone.registered_at) == (
        "gone", None, "2026-06-07T02:25:47Z",
    )  # fmt: skip
    depths = {queue.name: (queue.depth, queue.oldest_ms) for queue in snapshot.queues}
    assert depths == {SHARED: (1, NOW_MS - 1_000), OWN: (1, NOW_MS - 1_000)}
    assert [task.id for task in snapshot.tasks] == ["t3"]
    assert snapshot.model_homes == {MODEL: NOW_MS - 500}
    assert {name: snapshot.counts[name] for name in ("pending", "running", "waiting", "dead")} == {
        "pending": 2, "running": 1, "waiting": 1, "dead": 1,
    }  # fmt: skip
    assert (snapshot.counts["done"], snapshot.counts["failed"]) == (5, 2)
    assert (snapshot.reaper.last_pass_ms, snapshot.reaper.schema) == (NOW_MS - 1_000, 1)
    assert snapshot.queued_bytes == 4 * len(seed.BODY)
    assert snapshot.server.version.split(".")[0] in ("7", "8", "9")
    assert (snapshot.server.role, snapshot.server.policy) == ("master", "noeviction")
    assert len(snapshot.server.run_id) == 40
    assert not snapshot.scan_cut


def test_an_empty_server_is_an_empty_grid(server: Server) -> None:
    store = Store.connect(parse_address(server.url))
    snapshot = store.read(read_snapshot(store.keys, tasks=True, waits=True, stray=True))
    assert (snapshot.workers, snapshot.queues, snapshot.tasks) == ((), (), ())
    store.close()


def test_what_another_version_wrote_is_no_traceback(real: World) -> None:
    real.seed(seed.worker(state="dreaming", models="not json", supports="7", wanted="{",
                          slots="many", polled_at=""))  # fmt: skip
    (worker,) = real.store.read(read_snapshot(real.keys)).workers
    assert (worker.state, worker.offers, worker.supports) == (WorkerState.STARTING, (), ())
    assert (worker.slots, worker.polled_at_ms, worker.wish) == (0, 0, Wish())


def test_a_task_and_its_place(real: World) -> None:
    real.seed(seed.pending("t1", band=1), seed.pending("t2", band=1, turn=2, seq=2),
              seed.running("t3", texts=4, recoveries=2, solo=1, avoid="ai-core"))  # fmt: skip

    def place(task: str) -> tuple[str, int]:
        found, where = real.store.read(read_place(real.keys, TaskId(task)))
        return (found.state if found else "", where)

    assert [place(task) for task in ("t1", "t2", "t3", "none")] == [
        ("pending", 1), ("pending", 2), ("running", 0), ("", 0),
    ]  # fmt: skip
    t3, t1 = TaskId("t3"), TaskId("t1")
    found = real.store.read(read_tasks(real.keys, (t3, t1, TaskId("none"))))
    task, queued = found[t3], found[t1]
    assert task is not None
    assert (task.state, task.worker, task.token, task.n) == (State.RUNNING, "esxi", "esxi1:1:1", 4)
    assert (task.recoveries, task.solo, task.avoid, task.streamed) == (2, True, "ai-core", True)
    assert queued is not None
    assert (queued.band, queued.token, queued.claimed_at_ms) == (Band.BACKGROUND, None, None)
    assert queue_model(queued.queue) == MODEL
    assert found[TaskId("none")] is None


@pytest.fixture
def crowd(server: Server) -> redis.Redis:
    """1,000 workers and 10,000 tasks, half of them running."""
    pipe = server.client.pipeline(transaction=False)
    for w in range(1_000):
        seed.worker(f"w{w}", slots=8, tasks=tuple(f"r{w}x{i}" for i in range(5)))(pipe, KEYS)
    for w in range(1_000):
        for i in range(5):
            task = {"state": "running", "worker": f"w{w}", "token": f"w{w}:{i}:1", "queue": SHARED}
            pipe.hset(f"task:r{w}x{i}", mapping=task)  # type: ignore[arg-type]
            pipe.zadd("grid:due", {f"r{w}x{i}": NOW_MS})
            told = {"state": "pending", "queue": f"{SHARED}{w % 50}", "queued_at": NOW_MS - i}
            pipe.hset(f"task:p{w}x{i}", mapping=told)  # type: ignore[arg-type]
            pipe.zadd(f"{SHARED}{w % 50}", {f"p{w}x{i}": i})
            pipe.zadd("grid:due", {f"p{w}x{i}": NOW_MS})
    pipe.zadd("grid:queues", {f"{SHARED}{q}": NOW_MS for q in range(50)})
    pipe.execute()
    return server.client


def test_a_crowd_is_read_in_a_few_round_trips(server: Server, crowd: redis.Redis) -> None:
    store = Store.connect(parse_address(server.url), reply_s=30)
    began = time.monotonic()
    snapshot, trips = counted(store, read_snapshot(store.keys, tasks=True, waits=True))
    assert time.monotonic() - began < SECONDS_FOR_ALL
    assert trips <= 5
    assert (len(snapshot.workers), len(snapshot.tasks), len(snapshot.queues)) == (1_000, 5_000, 50)
    assert (snapshot.counts["pending"], snapshot.counts["running"]) == (5_000, 5_000)
    assert {queue.oldest_ms for queue in snapshot.queues} == {NOW_MS - 4}

    _, stray_trips = counted(store, read_snapshot(store.keys, stray=True))
    assert stray_trips <= 2 + 10
    store.close()


def test_a_scan_is_cut_short_and_says_so(server: Server) -> None:
    pipe = server.client.pipeline(transaction=False)
    for i in range(30_000):
        pipe.set(f"theirs:{i}", "x", ex=60)
    pipe.execute()
    store = Store.connect(parse_address(server.url))
    snapshot, trips = counted(store, read_snapshot(store.keys, stray=True))
    assert snapshot.scan_cut
    assert trips <= 2 + 10
    store.close()
    server.client.flushall()


def test_facts_of_a_server_that_tells_nothing() -> None:
    assert server_facts(None) == Facts()
    assert server_facts(b"# Server\r\nredis_version:7.0.15\r\nrole:slave\r\n") == Facts(
        version="7.0.15", role="slave"
    )
