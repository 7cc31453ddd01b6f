"""Every role works with exactly the rights that docs/security.md grants, and with no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.rules.routing import Routing
from cogrid.store.address import parse_address
from cogrid.store.api_keys import read_keys
from cogrid.store.client import Store
from cogrid.store.events import read_events
from cogrid.store.fitness import read_fitness, read_roles
from cogrid.store.follow import find_tasks, touch_inbox
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading
from cogrid.store.refusal import StoreError
from cogrid.store.roles import Role, acl_line
from cogrid.store.seen import read_seen
from cogrid.store.snapshot import read_snapshot
from cogrid.store.stories import read_story
from cogrid.store.task_lists import Listing, read_listed
from cogrid.store.usage import read_usage
from tests.conftest import needs
from tests.servers import KINDS, Kind, Server, launch
from tests.store.acts import ACTS
from tests.store.scene import Scene
from tests.store.variants import CLOCK_KEY, clocked

PAGE = (Path(__file__).parents[2] / "docs/security.md").read_text(encoding="utf-8")
PREFIXES = ("", "cogrid:", "{cogrid}:")
WRITERS = [role for role in Role if role is not Role.READER]
PASSWORD = "pw"
OF: dict[Role, frozenset[str]] = {
    Role.COORDINATOR: frozenset(
        {"submit", "attach", "detach", "renew_clients", "limit", "cancel", "withdraw"}
    ),
    Role.WORKER: frozenset({"hello", "renew", "claim", "append", "finish", "wish"}),
    Role.REAPER: frozenset(
        {"begin_pass", "reap", "move", "promote", "expire", "fail_homeless", "stamp_homes", "tend",
         "drop", "forget", "cancel"}
    ),
    Role.OPERATOR: frozenset(
        {"submit", "cancel", "forget", "wish", "requeue", "revive", "purge", "note", "forget_model"}
    ),
}  # fmt: skip
"""The scripts that each role calls."""


@pytest.fixture(scope="module", params=[kind.name for kind in KINDS])
def granting(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of these tests' own, whose users they make."""
    kind: Kind = next(kind for kind in KINDS if kind.name == request.param)
    needs(kind)
    server = launch(kind)
    yield server
    server.close()


def grant(server: Server, role: Role, prefix: str) -> redis.Redis:
    """A client of the user that the role's line makes. Beyond it, the user may read the key of the
    test's clock."""
    words = (*acl_line(role, prefix, password=PASSWORD).split(), f"%R~{CLOCK_KEY}")
    server.client.execute_command(*words)  # type: ignore[no-untyped-call]
    return redis.Redis(
        unix_socket_path=str(server.socket_path), username=f"cogrid-{role}", password=PASSWORD,
        protocol=2,
    )  # fmt: skip


def test_the_page_has_exactly_these_lines() -> None:
    told = re.findall(r"^ACL SETUSER .*$", PAGE, re.MULTILINE)
    assert told == [acl_line(role, prefix) for prefix in ("", "cogrid:") for role in Role]


def test_every_script_is_some_roles() -> None:
    called = frozenset[str]().union(*OF.values())
    assert {act.script for act in ACTS.values()} <= called


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("role", WRITERS)
def test_a_role_may_do_what_it_does(granting: Server, role: Role, prefix: str) -> None:
    user = grant(granting, role, prefix)
    for name, act in ACTS.items():
        if act.script not in OF[role]:
            continue
        granting.client.flushall()
        scene = Scene(granting.client)
        scene.keys = scene.store.keys = Keys(prefix)
        scene.seed(*act.seeds)
        scene.tick(1)
        store = Store(user, scene.keys, "redis://test", clocked)
        try:
            store.do(act.call(scene.keys))
        except StoreError as error:
            raise AssertionError(f"{role} may not {name}: {error}") from error
        assert scene.changes(), f"{name} has done nothing, so it needed no right"
    user.close()


def readings(store: Store) -> list[Reading[Any]]:
    """What the reading commands read."""
    keys = store.keys
    return [
        read_snapshot(keys, tasks=True, waits=True, stray=True),
        read_seen(keys, Routing(), Limits()),
        read_events(keys),
        read_story(keys, TaskId("t1")),
        *(read_listed(keys, which) for which in Listing),
        find_tasks(keys, "t"),
        read_usage(keys, ("2026-06-07",)),
    ]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.WORKER])
def test_every_role_but_a_worker_may_look(granting: Server, role: Role, prefix: str) -> None:
    granting.client.flushall()
    scene = Scene(granting.client)
    scene.keys = scene.store.keys = Keys(prefix)
    scene.seed(*ACTS["cancel what runs"].seeds, *ACTS["claim"].seeds[2:])
    user = grant(granting, role, prefix)
    store = Store(user, scene.keys, "redis://test")
    for reading in readings(store):
        store.read(reading)
    user.close()


def test_a_coordinator_reads_keys_and_touches_its_inbox(granting: Server) -> None:
    user = grant(granting, Role.COORDINATOR, "cogrid:")
    store = Store(user, Keys("cogrid:"), "redis://test")
    assert store.read(read_keys(store.keys)) == {}
    store.read(touch_inbox(store.keys, "c1"))
    user.close()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("role", WRITERS)
def test_a_role_finds_the_server_fit(granting: Server, role: Role, prefix: str) -> None:
    granting.client.flushall()
    user = grant(granting, role, prefix)
    store = Store(user, Keys(prefix), "redis://test")
    assert store.read(read_fitness(store.keys, role=role)) == ()
    able = store.read(read_roles(store.keys))
    assert able is not None
    assert {role, Role.READER} <= set(able)
    everything = {Role.COORDINATOR, Role.OPERATOR}
    assert (set(able) == set(Role)) is (role in everything)
    user.close()


def test_a_reader_is_known_by_what_it_may_not(granting: Server) -> None:
    user = grant(granting, Role.READER, "")
    store = Store(user, Keys(), "redis://test")
    assert store.read(read_roles(store.keys)) is None
    user.close()


@pytest.mark.parametrize(
    ("role", "command"),
    [
        (Role.READER, ("HSET", "cogrid:worker:esxi", "state", "ready")),
        (Role.READER, ("ZADD", "cogrid:grid:due", "1", "t1")),
        (Role.READER, ("HGETALL", "cogrid:grid:keys")),
        (Role.READER, ("EVAL", "return 1", "0")),
        (Role.WORKER, ("HGETALL", "cogrid:grid:keys")),
        (Role.WORKER, ("HSET", "cogrid:grid:reaper", "hold_until", "0")),
        (Role.REAPER, ("HGETALL", "cogrid:grid:keys")),
        *((role, ("GET", "worker:esxi")) for role in Role),
        *((role, ("KEYS", "*")) for role in Role),
        *((role, ("FLUSHALL",)) for role in Role),
        *((role, ("CONFIG", "GET", "*")) for role in Role),
    ],
)
def test_no_role_may_more(granting: Server, role: Role, command: tuple[str, ...]) -> None:
    user = grant(granting, role, "cogrid:")
    with pytest.raises(redis.exceptions.NoPermissionError):
        user.execute_command(*command)  # type: ignore[no-untyped-call]
    user.close()


def test_a_url_with_the_user_is_enough(granting: Server) -> None:
    grant(granting, Role.READER, "").close()
    url = f"redis://cogrid-reader:{PASSWORD}@127.0.0.1:{granting.port}/3"
    store = Store.connect(parse_address(url))
    assert store.read(read_snapshot(store.keys)).workers == ()
    store.close()
