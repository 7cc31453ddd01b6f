"""What a host's own Python finds without cogrid, run as it is sent: by stdin, alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest

from cogrid.engine.fault.server import FaultEngine
from cogrid.errors import UsageError
from cogrid.ops.sanity.probe import Bare, bare_program
from cogrid.store.address import Address, parse_address
from tests.servers import REDIS7, Server


def look(engines: tuple[str, ...] = (), redis: Address | None = None) -> Bare:
    done = subprocess.run(
        (sys.executable, "-I", "-S", "-"),
        input=bare_program(engines, redis, limit_s=2.0).encode(),
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stderr == b""
    return msgspec.json.decode(done.stdout, type=Bare)


def test_redis_answers_and_tells_the_time(server: Server) -> None:
    for url in (server.url, server.tcp_url):
        found = look(redis=parse_address(url)).redis
        assert found is not None
        assert found.error is None
        assert abs(found.ahead_s or 0.0) < 1.0


def test_a_server_with_an_authority_of_its_own_is_checked_against_that(
    own_server: Callable[..., Server],
) -> None:
    server = own_server(REDIS7, tls=True)
    assert server.certificates is not None
    url, ca_file = server.tls_url.partition("?")[0], str(server.certificates.authority)

    def error(ca_file: str | None) -> str | None:
        found = look(redis=parse_address(url, ca_file=ca_file)).redis
        assert found is not None
        return found.error

    assert error(ca_file) is None
    assert "certificate verify failed" in (error(None) or "")
    with pytest.raises(UsageError, match=r"redis\.ca_file /none/ca\.pem cannot be read"):
        error("/none/ca.pem")


def test_redis_wants_a_password(own_server: Callable[..., Server]) -> None:
    server = own_server(password='a "secret" 100%')
    port = server.port

    def error(password: str | None) -> str | None:
        found = look(redis=Address(port=port, password=password)).redis
        assert found is not None
        return found.error

    assert error('a "secret" 100%') is None
    assert "NOAUTH" in (error(None) or "")
    assert "WRONGPASS" in (error("another") or "")


def test_redis_that_is_not_there() -> None:
    found = look(redis=parse_address("redis://127.0.0.1:9/0")).redis
    assert found is not None
    assert "refused" in (found.error or "")
    assert look().redis is None


async def test_engines_are_told_apart_by_what_they_answer() -> None:
    import asyncio

    async with FaultEngine() as both, FaultEngine(dialect="openai") as other:
        first = await asyncio.to_thread(look, ("http://127.0.0.1:9", both.url))
        second = await asyncio.to_thread(look, (other.url, both.url))
    assert (first.engine.url, first.engine.kind) == (both.url, "ollama")
    assert (second.engine.url, second.engine.kind) == (other.url, "openai")
    assert look(("http://127.0.0.1:9",)).engine.url == ""
