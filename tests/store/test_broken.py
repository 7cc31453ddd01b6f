"""Scripts that the server breaks off in the middle: nothing is lost, nothing is said twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from cogrid.store.client import Store
from cogrid.store.passes import tend
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call, script_names
from tests.conftest import needs
from tests.servers import KINDS, VALKEY9, Kind, Server, launch
from tests.store.actors import Reaper
from tests.store.acts import ACTS, Act
from tests.store.checker import Grid, faults
from tests.store.dump import task_ids
from tests.store.scene import Scene
from tests.store.seed import MODEL
from tests.store.test_machine import OVER, drain
from tests.store.variants import CLOCK_KEY, STOPPED, clocked, commands, stopping

WRITES = {"ZADD", "ZREM", "ZREMRANGEBYSCORE", "HSET", "HDEL", "HINCRBY", "SADD", "SREM", "XADD",
          "SET", "INCR", "PERSIST", "PEXPIRE", "DEL"}  # fmt: skip
PATTERNS = ("worker:*", "tasks:*", "turns:*", "wake:tasks:*", "wake:@*", "task:*", "grid:workers",
            "grid:due", "grid:clients", "grid:queues", "grid:models", "grid:finished", "grid:dead",
            "grid:reaper", "grid:totals", "grid:keys", "grid:events", "usage:*", "rate:*",
            "limit:*")  # fmt: skip


@pytest.fixture(scope="module", params=[kind.name for kind in KINDS])
def limiting(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of these tests' own, whose users they change."""
    kind: Kind = next(kind for kind in KINDS if kind.name == request.param)
    needs(kind)
    server = launch(kind)
    yield server
    server.close()


def a_scene(client: redis.Redis, act: Act) -> Scene:
    """The act's state, on an empty server."""
    client.flushall()
    scene = Scene(client)
    scene.mended, scene.judging = True, False
    scene.truth.models["esxi"] = (MODEL,)
    scene.seed(*act.seeds)
    return scene


@contextmanager
def limited(server: Server, scene: Scene, *rules: str) -> Iterator[Store]:
    """A store whose user has only these rights."""
    words = ("ACL", "SETUSER", "limited", "reset", "on", ">pw", "&*", *rules)
    server.client.execute_command(*words)  # type: ignore[no-untyped-call]
    user = redis.Redis(
        unix_socket_path=str(server.socket_path), username="limited", password="pw", protocol=2
    )
    yield Store(user, scene.keys, "redis://test", clocked)
    user.close()


def refusal_of(store: Store, call: Call[Any]) -> StoreError | None:
    """What the server said to it, or None."""
    try:
        store.do(call)
    except StoreError as error:
        return error
    return None


def first_half(name: str, scene: Scene) -> dict[str, Any]:
    """What has changed, but for what stands by itself: that a worker has polled, and an answer
    whose next claim is refused."""
    found = scene.changes()
    if found.get("worker:esxi") == {"claim": "2", "polled_at": str(scene.now_ms)}:
        del found["worker:esxi"]
    answered = name == "finish and claim" and "grid:finished" in found
    return {} if answered else found


def is_mended(scene: Scene) -> None:
    """Everything comes to one end, and then nothing is left."""
    drain(scene, (MODEL,), step_ms=2_900)
    for _ in range(8):
        scene.tick(2_900)
        Reaper(scene).pass_once()
    scene.unarmed.update(Grid(scene.dump(), scene.now_ms).queues)
    grid = Grid(scene.dump(), scene.now_ms, True, frozenset(scene.unarmed))
    assert faults(grid) == []
    assert {told["state"] for told in grid.tasks.values()} <= OVER
    assert not any(grid.held.values())
    assert grid.queues == {}
    scene.tick(8 * 86_400_000)
    scene.do(tend(scene.keys, ()))
    left = {key: found for key, found in scene.dump().items() if found.ttl_ms == -1}
    assert task_ids(left) == ()
    assert [key for key in left if key.startswith(("task:", "turns:", "wake:tasks"))] == []


@pytest.mark.parametrize("name", ACTS)
def test_a_user_who_lacks_a_command_breaks_nothing(limiting: Server, name: str) -> None:
    act = ACTS[name]
    for command in sorted(commands(act.script) | {"DEL"}):
        scene = a_scene(limiting.client, act)
        with limited(limiting, scene, "~*", "+@all", f"-{command.lower()}") as store:
            error = refusal_of(store, act.call(scene.keys))
        if error is None:
            continue
        assert (error.code, error.passing) == ("NOPERM", False), f"{command}: {error}"
        if command in WRITES:
            assert first_half(name, scene) == {}, command
        elif scene.changes():
            is_mended(scene)


@pytest.mark.parametrize("name", ACTS)
def test_a_user_who_may_not_touch_some_keys_breaks_nothing(limiting: Server, name: str) -> None:
    act = ACTS[name]
    for pattern in PATTERNS:
        scene = a_scene(limiting.client, act)
        others = [f"~{one}" for one in (*PATTERNS, CLOCK_KEY) if one != pattern]
        with limited(limiting, scene, *others, "+@all") as store:
            error = refusal_of(store, act.call(scene.keys))
        if error is not None:
            assert error.code == "NOPERM", f"{pattern}: {error}"
            assert first_half(name, scene) == {}, pattern


@pytest.mark.parametrize("name", ACTS)
def test_a_user_needs_no_more_than_cogrids_keys(limiting: Server, name: str) -> None:
    """Else the tests above would prove nothing."""
    act = ACTS[name]
    scene = a_scene(limiting.client, act)
    ours = [f"~{one}" for one in (*PATTERNS, CLOCK_KEY)]
    rights = [f"+{command.lower()}" for command in (*commands(), "EVALSHA", "SCRIPT")]
    with limited(limiting, scene, *ours, *rights) as store:
        assert refusal_of(store, act.call(scene.keys)) is None


@pytest.mark.parametrize("name", ACTS)
def test_another_programs_key_is_left_alone(limiting: Server, name: str) -> None:
    act = ACTS[name]
    scene = a_scene(limiting.client, act)
    before = set(scene.dump())
    scene.do(act.call(scene.keys))
    for key in sorted(before | set(scene.dump())):
        scene = a_scene(limiting.client, act)
        scene.client.delete(key)
        scene.client.rpush(key, "theirs")
        scene.mark()
        error = refusal_of(scene.store, act.call(scene.keys))
        if error is not None:
            assert error.code in ("FOREIGN", "WRONGTYPE"), f"{key}: {error}"
            assert first_half(name, scene) == {}, key
        else:
            assert scene.client.lrange(key, 0, -1) == [b"theirs"], key
            assert scene.client.ttl(key) == -1, key


@pytest.fixture(scope="module")
def real_client() -> Iterator[redis.Redis]:
    needs(VALKEY9)
    server = launch(VALKEY9)
    yield server.client
    server.close()


@pytest.mark.parametrize("name", ACTS)
def test_a_script_may_stop_after_any_write(real_client: redis.Redis, name: str) -> None:
    """What it began is completed or undone by whoever meets it: the same call again, a pass, a
    claim; with a living worker and without."""
    act = ACTS[name]
    for after in range(150):
        scene = a_scene(real_client, act)
        broken = scene.with_scripts(stopping(act.script, after))
        error = refusal_of(broken, act.call(scene.keys))
        if error is None:
            assert after > 0
            return
        assert STOPPED in str(error), after
        if after % 2:
            scene.do(act.call(scene.keys))
        is_mended(scene)
    raise AssertionError("it never came to its end")


def test_every_script_is_broken() -> None:
    assert {act.script for act in ACTS.values()} == set(script_names()) - {"rights"}
