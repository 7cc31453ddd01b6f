"""The test servers, the proxy and the leak check themselves."""

from __future__ import annotations

import os
from collections.abc import Callable

import fakeredis
import pytest
import redis

from tests import conftest
from tests.key_leaks import leaks
from tests.proxy import Proxy
from tests.servers import ONCE, REDIS7, Server, foreign
from tests.wait import until

VERSIONS = {"valkey9": "9.1", "valkey8": "8.1", "redis7": "7.0"}


def test_every_server_is_what_it_says_and_answers_on_both_addresses(every_server: Server) -> None:
    info = every_server.client.info("server")
    version = info.get("valkey_version", info["redis_version"])
    assert version.startswith(VERSIONS.get(every_server.name, ""))
    with redis.Redis.from_url(every_server.tcp_url) as client:
        assert client.info("server")["run_id"] == info["run_id"]


def test_a_shared_server_is_empty_at_first(server: Server) -> None:
    assert server.client.dbsize() == 0


def test_a_server_with_a_password_refuses_others(own_server: Callable[..., Server]) -> None:
    locked = own_server(password="p w%")
    assert locked.client.ping()
    with (
        redis.Redis(port=locked.port, retry=ONCE) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()


def test_a_server_with_users_limits_their_rights(own_server: Callable[..., Server]) -> None:
    server = own_server(acl=("user default on nopass ~* &* +@all", "user w on >secret ~t:* +get"))
    with redis.Redis(port=server.port, username="w", password="secret") as worker:
        assert worker.get("t:1") is None
        with pytest.raises(redis.exceptions.NoPermissionError):
            worker.set("t:1", "x")


def test_debians_server_speaks_tls(own_server: Callable[..., Server]) -> None:
    server = own_server(REDIS7, tls=True, password="secret")
    assert server.tls_url.startswith("rediss://")
    with redis.Redis.from_url(server.tls_url) as client:
        assert client.ping()
    with (
        redis.Redis.from_url(server.tls_url.partition("?")[0], retry=ONCE) as distrustful,
        pytest.raises(redis.ConnectionError, match="certificate"),
    ):
        distrustful.ping()


def test_a_persistent_server_keeps_its_data_over_kill_9(own_server: Callable[..., Server]) -> None:
    server = own_server(persist=True)
    server.client.set("kept", "1")
    server.restart(kill=True)
    assert server.client.get("kept") == b"1"


def test_a_paused_server_does_not_answer(own_server: Callable[..., Server]) -> None:
    server = own_server()
    server.pause()
    with (
        redis.Redis(port=server.port, socket_timeout=0.1, retry=ONCE) as client,
        pytest.raises(redis.TimeoutError),
    ):
        client.ping()
    server.resume()
    assert server.client.ping()


def test_somebodys_server_is_only_taken_empty(own_server: Callable[..., Server]) -> None:
    theirs = own_server()
    theirs.client.set("precious", "1")
    with pytest.raises(AssertionError, match="holds 1 keys"):
        foreign(theirs.url)
    theirs.client.delete("precious")
    taken = foreign(theirs.url)
    taken.client.set("ours", "1")
    taken.clear()
    assert theirs.client.dbsize() == 0
    taken.close()
    assert theirs.client.ping()


def test_a_missing_service_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "CI", False)
    with pytest.raises(pytest.skip.Exception, match=r"Redis is not here \(install it\)"):
        conftest.missing("Redis", "install it")
    monkeypatch.setattr(conftest, "CI", True)
    with pytest.raises(pytest.fail.Exception, match="Redis is not here"):
        conftest.missing("Redis")


def test_time_is_scaled_for_processes_too(scale: float) -> None:
    assert float(os.environ["COGRID_TIME_SCALE"]) == scale == conftest.SCALE


@pytest.mark.defaults
def test_but_not_where_the_defaults_are_the_point(scale: float) -> None:
    assert float(os.environ["COGRID_TIME_SCALE"]) == scale == 1.0


def test_the_fake_server_runs_scripts(fake_server: fakeredis.FakeServer) -> None:
    client = fakeredis.FakeRedis(server=fake_server)
    assert client.eval("redis.call('SET', KEYS[1], ARGV[1]) return 7", 1, "k", "v") == 7
    assert client.get("k") == b"v"
    client.close()


@pytest.fixture
def proxied(server: Server) -> object:
    with Proxy(server.port) as proxy:
        yield proxy


def through(proxy: Proxy, timeout_s: float = 5.0) -> redis.Redis:
    return redis.Redis(
        port=proxy.port, socket_timeout=timeout_s, retry=ONCE, single_connection_client=True
    )


def test_the_proxy_passes_on_and_cuts(server: Server, proxied: Proxy) -> None:
    client = through(proxied)
    assert client.ping()
    proxied.cut(refuse=True)
    with pytest.raises(redis.ConnectionError):
        client.ping()
    proxied.heal()
    assert until(client.ping)
    client.close()


def test_a_black_hole_delivers_later(server: Server, proxied: Proxy) -> None:
    client = through(proxied, timeout_s=0.1)
    assert client.ping()
    proxied.black_hole()
    with pytest.raises(redis.TimeoutError):
        client.set("late", "1")
    assert server.client.get("late") is None
    client.close()


def test_a_cut_answer_was_carried_out(server: Server, proxied: Proxy) -> None:
    client = through(proxied)
    assert client.ping()
    proxied.cut_answers_after(2)
    with pytest.raises(redis.ConnectionError):
        client.set("task:x:body", "1", ex=60)
    assert server.client.get("task:x:body") == b"1"
    client.close()


def test_a_cut_request_was_not(server: Server, proxied: Proxy) -> None:
    client = through(proxied)
    assert client.ping()
    proxied.cut_requests_after(5)
    with pytest.raises(redis.ConnectionError):
        client.set("task:x:body", "1", ex=60)
    assert server.client.get("task:x:body") is None
    client.close()


@pytest.mark.leaves_keys
def test_a_leak_is_seen(server: Server) -> None:
    server.client.set("stray", "1")
    server.client.set("grid:workers", "1")
    server.client.set("task:gone:body", "1")
    server.client.hset("task:open", mapping={"state": "pending"})
    server.client.set("task:open:body", "1")
    server.client.hset("mine:task:ended", mapping={"state": "done"})
    server.client.set("task:ended:body", "1", ex=60)
    assert leaks(server.client) == (
        "grid:workers: a string, should be a zset",
        "mine:task:ended (hash): no TTL, and not permanent",
        "stray (string): not in store/keys.py",
        "task:gone:body (string): no TTL, and not permanent",
    )
