"""What a role says at its start about a server that does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogrid.model.names import Queue, WorkerId, own_queue, shared_queue
from cogrid.store.address import parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.client import Store
from cogrid.store.fitness import COMMANDS, KEYLESS, Problem, read_fitness
from cogrid.store.keys import Keys
from cogrid.store.roles import Role
from tests.servers import REDIS7, VALKEY8, Server, free_port
from tests.store.variants import commands

ESXI = WorkerId("esxi")
QUEUES = (own_queue("cpu", "esxi"), shared_queue("cpu", "gemma3:1b"))


def problems(url: str, prefix: str = "", queues: tuple[Queue, ...] = QUEUES,
             **login: str) -> tuple[Problem, ...]:  # fmt: skip
    store = Store.connect(parse_address(url, **login), prefix)
    try:
        return store.read(read_fitness(store.keys, queues, ESXI))
    finally:
        store.close()


def test_an_empty_server_fits(every_server: Server) -> None:
    assert problems(every_server.url) == ()


async def test_the_async_store_reads_the_same(server: Server) -> None:
    store = AsyncStore(parse_address(server.url))
    assert await store.read(read_fitness(store.keys, QUEUES, ESXI)) == ()
    store.close()


def test_every_command_of_every_script_is_asked_for() -> None:
    assert commands() - {"EVAL"} <= {c for some in COMMANDS.values() for c in some} | set(KEYLESS)


@pytest.mark.leaves_keys
def test_another_programs_keys_are_named(server: Server) -> None:
    """The list and the hash of the incident's day."""
    server.client.rpush("tasks:cpu:esxi", "cb305e3a")
    server.client.set("grid:events", "1")
    server.client.hset("worker:esxi", "registered_at", "2026-06-07T02:25:47Z")
    assert problems(server.url) == (
        Problem("grid:events is a string, not cogrid's", "set a prefix"),
        Problem("tasks:cpu:esxi is a list, not cogrid's", "set a prefix"),
    )
    assert problems(server.url, "mine:") == ()


def test_a_newer_schema_is_named(server: Server) -> None:
    server.client.hset("grid:reaper", "schema", 99)
    (problem,) = problems(server.url)
    assert problem.sentence == "Redis holds the data of a newer cogrid (schema 99, here 1)"
    assert problem.fatal


@pytest.mark.parametrize(
    ("role", "schema", "fatal"),
    [(Role.WORKER, 2, False), (Role.COORDINATOR, 2, False), (Role.REAPER, 2, True),
     (Role.WORKER, 3, True)],
)  # fmt: skip
def test_one_step_ahead_stops_only_a_reaper(
    server: Server, role: Role, schema: int, fatal: bool
) -> None:
    server.client.hset("grid:reaper", "schema", schema)
    store = Store.connect(parse_address(server.url))
    (problem,) = store.read(read_fitness(store.keys, role=role))
    assert problem.fatal is fatal
    assert ("works on" in problem.hint) is not fatal


@pytest.mark.parametrize(("policy", "fatal"), [("allkeys-lru", True), ("volatile-lru", False)])
def test_eviction_is_named(own_server: Callable[..., Server], policy: str, fatal: bool) -> None:
    server = own_server(settings={"maxmemory": "50mb", "maxmemory-policy": policy})
    (problem,) = problems(server.url)
    assert policy in problem.sentence
    assert problem.fatal is fatal
    server.client.config_set("maxmemory", "0")
    assert problems(server.url) == ()


def test_a_replica_is_named(own_server: Callable[..., Server]) -> None:
    server = own_server(settings={"replicaof": "127.0.0.1 1"})
    (problem,) = problems(server.url)
    assert (problem.sentence, problem.fatal) == ("this is a read-only replica", False)


def test_a_cluster_wants_a_hash_tag(own_server: Callable[..., Server]) -> None:
    server = own_server(
        REDIS7, settings={"cluster-enabled": "yes", "cluster-port": str(free_port())}
    )
    server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)  # type: ignore[no-untyped-call]
    for prefix in ("", "mine:", "{}:"):
        first = problems(server.url, prefix)[0]
        assert "is a cluster" in first.sentence
        assert "{cogrid}:" in first.hint


@pytest.mark.parametrize("kind", [REDIS7, VALKEY8])
def test_rights_that_are_missing_are_named(own_server: Callable[..., Server], kind: object) -> None:
    server = own_server(kind, acl=(
        "user default on nopass ~* &* +@all",
        "user reads on >pw ~* &* +@all -@write",
        "user mine on >pw ~cg:* &* +@all",
        "user poor on >pw ~* &* +@all -zrem -info",
        "user mute on >pw ~* &* +@all -@scripting",
    ))  # fmt: skip

    def told(user: str, prefix: str = "") -> list[str]:
        found = problems(server.tcp_url, prefix, username=user, password="pw")
        return [problem.sentence for problem in found]

    assert told("mine", "cg:") == []
    assert any("HSET" in sentence and "grid:reaper" in sentence for sentence in told("reads"))
    assert any("ZADD" in sentence and "grid:workers" in sentence for sentence in told("mine"))
    zrem, info, unknown = told("poor")
    assert zrem.startswith("the Redis user may not run ZREM on grid:workers, grid:due")
    assert info == "the Redis user may not run INFO"
    assert unknown.startswith("the Redis user may not run INFO, so")
    (mute,) = told("mute")
    assert mute.startswith("the Redis user may not run scripts")


def test_an_old_server_is_named() -> None:
    reading = read_fitness(Keys())
    asked = next(reading)
    old = b"redis_version:6.2.7\r\nredis_mode:standalone\r\nrole:master\r\n"
    with pytest.raises(StopIteration) as end:
        reading.send([old, None, *[b"none"] * (len(asked) - 2)])
    (problem,) = end.value.value
    assert problem.sentence == "this is Redis 6.2.7, cogrid needs 7.0 or later"


def test_it_changes_nothing(server: Server) -> None:
    problems(server.url)
    assert server.client.dbsize() == 0
