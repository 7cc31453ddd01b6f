"""Fixtures of the store's tests: worlds, one for each kind of server and one in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import fakeredis
import pytest

from tests.conftest import needs
from tests.key_leaks import leaks
from tests.servers import KINDS, Pool
from tests.store.variants import CLOCK_KEY
from tests.store.world import World

FAKE = "fakeredis"
DEFAULT = "valkey9"


def a_fake() -> fakeredis.FakeRedis:
    """A server of its own inside this process."""
    return fakeredis.FakeRedis(
        server=fakeredis.FakeServer(server_type="redis", version=(7, 0)), decode_responses=False
    )


@pytest.fixture(params=[FAKE, *(kind.name for kind in KINDS)])
def world(servers: Pool, request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty server at ``NOW_MS``: fakeredis and each real one in turn."""
    if request.param == FAKE:
        client = a_fake()
        yield World(client)
        client.close()
        return
    needs(next(kind for kind in KINDS if kind.name == request.param))
    yield from _checked(World(servers.get(request.param).client), request)


@pytest.fixture
def real(servers: Pool, request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty world on the default server."""
    needs(KINDS[0])
    yield from _checked(World(servers.get(DEFAULT).client), request)


def _checked(world: World, request: pytest.FixtureRequest) -> Iterator[World]:
    yield world
    world.client.delete(CLOCK_KEY)
    if request.node.get_closest_marker("leaves_keys") is None:
        found = leaks(world.client)
        assert not found, "left behind in the server: " + ", ".join(found)


@pytest.fixture
def another(servers: Pool) -> Iterator[Callable[..., World]]:
    """Makes worlds on the default server, cleared each time, with scripts of the test's choice."""
    needs(KINDS[0])

    def make(**options: object) -> World:
        return World(servers.get(DEFAULT).client, **options)  # type: ignore[arg-type]

    yield make
    servers.get(DEFAULT)
