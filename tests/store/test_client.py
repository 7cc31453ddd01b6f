"""Both stores on a server that restarts, forgets, refuses, falls silent, and on every way to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from cogrid.model.names import Queue, TaskId
from cogrid.model.task import Kind as TaskKind
from cogrid.store.address import Address, parse_address
from cogrid.store.client import Store
from cogrid.store.clients import limit
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call
from cogrid.store.tasks import Submission, submit
from tests.proxy import Proxy
from tests.servers import KINDS, REDIS7, Kind, Server
from tests.store.seed import SHARED
from tests.store.ways import WAYS, Sync, Way, count_models, soon, stamp

Opens = Callable[..., Way]
ASKED = Submission(id=TaskId("t1"), kind=TaskKind.CHAT, model="gemma3:1b", queue=Queue(SHARED),
                   shared=Queue(SHARED), body=b"{}", user="ada")  # fmt: skip


@pytest.fixture(params=WAYS)
async def opens(request: pytest.FixtureRequest) -> AsyncIterator[Opens]:
    """Opens stores of one kind, and closes them."""
    opened: list[Way] = []

    def make(url: str | Address, reply_s: float = 5.0) -> Way:
        address = parse_address(url) if isinstance(url, str) else url
        opened.append(WAYS[request.param](address, reply_s))
        return opened[-1]

    yield make
    for store in opened:
        store.close()
    await asyncio.sleep(0)  # what was closed is let go of in the loop's next turn


async def refused(store: Way) -> StoreError:
    """What a transition is told."""
    with pytest.raises(StoreError) as told:
        await store.do(stamp())
    return told.value


async def test_every_way_to_the_server(own_server: Callable[..., Server], opens: Opens) -> None:
    server = own_server(REDIS7, tls=True, password="p w%")
    certificates = server.certificates
    assert certificates is not None
    port = server.tls_url.partition("@")[2].partition("/")[0].rpartition(":")[2]
    secure = parse_address(
        f"rediss://localhost:{port}", password="p w%", ca_file=str(certificates.authority)
    )
    for n, address in enumerate((server.url, server.tcp_url, secure), start=1):
        store = opens(address)
        assert await store.do(stamp(f"m{n}")) == 1
        assert await store.read(count_models()) == n


def test_the_address_from_which_the_server_is_reached(own_server: Callable[..., Server]) -> None:
    server = own_server(REDIS7, tls=True)
    certificates = server.certificates
    assert certificates is not None
    port = server.tls_url.partition("?")[0].rpartition(":")[2].removesuffix("/0")
    secure = parse_address(f"rediss://127.0.0.1:{port}", ca_file=str(certificates.authority))
    tcp, socket = parse_address(server.tcp_url), parse_address(server.url)
    assert (tcp.path, bool(socket.path)) == ("", True)
    for address, local in ((tcp, "127.0.0.1"), (secure, "127.0.0.1"), (socket, "")):
        with closing(Store.connect(address)) as store:
            assert store.local_address() == local
            assert store.read(count_models()) == 0, "the connection goes on"
    with closing(Store.connect(Address(port=1))) as nobody:
        assert nobody.local_address() == ""


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    own_server: Callable[..., Server], opens: Opens
) -> None:
    server = own_server(REDIS7, tls=True)
    port = server.tls_url.partition("?")[0].rpartition(":")[2].removesuffix("/0")
    error = await refused(opens(f"rediss://localhost:{port}"))
    assert "cannot be reached" in error.message
    assert "certificate" in error.message.lower()


async def test_databases_are_apart(own_server: Callable[..., Server], opens: Opens) -> None:
    server = own_server()
    await opens(f"redis://127.0.0.1:{server.port}/3").do(stamp())
    assert await opens(server.tcp_url).read(count_models()) == 0


async def test_who_may_come_in(own_server: Callable[..., Server], opens: Opens) -> None:
    server = own_server(acl=(
        "user default on nopass ~* &* +@all", "user ada on >hers ~* &* +@all",
        "user bob on >his ~* &* +@read +@connection +eval +evalsha +script",
    ))  # fmt: skip
    at = f"127.0.0.1:{server.port}"
    assert await opens(f"redis://ada:hers@{at}").do(stamp()) == 1
    for login in ("ada:wrong@", "eve:hers@"):
        error = await refused(opens(f"redis://{login}{at}"))
        assert error.code == "WRONGPASS", login
        assert "refuses this user or password" in error.message
        assert not error.passing
        assert "wrong" not in error.message.replace("WRONGPASS", "")
    error = await refused(opens(f"redis://bob:his@{at}"))
    assert (error.code, error.passing) == ("NOPERM", False)


async def test_a_password_is_asked_for(own_server: Callable[..., Server], opens: Opens) -> None:
    server = own_server(password="right")
    at = f"127.0.0.1:{server.port}"
    assert await opens(f"redis://:right@{at}").do(stamp()) == 1
    for login, code in (("", "NOAUTH"), (":wrong@", "WRONGPASS")):
        error = await refused(opens(f"redis://{login}{at}"))
        assert error.code == code
        assert "password" in error.hint


async def test_scripts_are_sent_again_after_they_were_forgotten(
    server: Server, opens: Opens
) -> None:
    store = opens(server.url)
    for _ in range(2):
        assert await store.do(stamp()) == 1
        server.client.script_flush()
    assert await store.do(stamp()) == 1


async def test_a_server_that_was_killed_and_comes_back(
    own_server: Callable[..., Server], opens: Opens
) -> None:
    server = own_server(persist=True)
    store = opens(server.url)
    await store.do(stamp())
    server.stop(kill=True)
    error = await refused(store)
    assert (error.code, error.passing) == ("", True)
    assert "cannot be reached" in error.message
    server.start()
    assert await soon(lambda: store.do(stamp("another")), (StoreError,)) == 1
    assert await store.read(count_models()) == 2


async def test_a_server_that_has_become_a_replica(
    own_server: Callable[..., Server], opens: Opens
) -> None:
    server = own_server(REDIS7)
    store = opens(server.url)
    await store.do(stamp())
    server.client.replicaof("127.0.0.1", "1")
    error = await refused(store)
    assert (error.code, error.passing) == ("READONLY", True)
    assert "primary" in error.hint
    server.client.replicaof("NO", "ONE")
    assert await store.do(stamp()) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_server_whose_memory_is_full(
    own_server: Callable[..., Server], opens: Opens, kind: Kind
) -> None:
    server = own_server(kind)
    store = opens(server.url)
    await store.do(stamp())
    server.client.config_set("maxmemory", "1")
    error = await refused(store)
    assert (error.code, error.passing) == ("OOM", True)
    with pytest.raises(StoreError, match="memory is full"):
        await store.do(submit(Keys(), ASKED))
    assert server.client.keys("*") == [b"grid:models"]
    server.client.config_set("maxmemory", "0")
    assert await store.do(stamp()) == 1


async def test_a_reading_that_is_refused_says_why(server: Server, opens: Opens) -> None:
    server.client.set("grid:models", "x")
    with pytest.raises(StoreError) as told:
        await opens(server.url).read(count_models())
    assert told.value.code == "WRONGTYPE"
    assert "prefix" in told.value.hint
    server.client.delete("grid:models")


async def test_silence_ends(server: Server, opens: Opens) -> None:
    with Proxy(server.port) as proxy:
        store = opens(f"redis://127.0.0.1:{proxy.port}", 0.2)
        await store.do(stamp())
        proxy.black_hole()
        began = time.monotonic()
        error = await refused(store)
        assert time.monotonic() - began < 4
        assert error.passing
        proxy.heal()
        assert await soon(lambda: store.do(stamp()), (StoreError,)) == 1


async def test_an_answer_that_was_cut_is_asked_for_again(server: Server, opens: Opens) -> None:
    with Proxy(server.port) as proxy:
        store = opens(f"redis://127.0.0.1:{proxy.port}")
        await store.do(stamp("one"))
        proxy.cut_answers_after(1)

        async def again() -> int:
            proxy.heal()
            return await store.do(stamp("two"))

        assert await soon(again, (StoreError,)) == 1
    assert server.client.zcard("grid:models") == 2


async def test_a_body_of_eight_megabytes(server: Server, opens: Opens) -> None:
    store = opens(server.url)
    body = b"\x00\xff" * (4 << 20)
    server.client.set("task:t1:body:mine", body, ex=60)
    asked = replace(ASKED, body=body, ticket="mine")
    assert (await store.do(submit(Keys(), asked))).status == "new"
    assert server.client.get("task:t1:body") == body


async def test_a_closed_store_opens_again(server: Server, opens: Opens) -> None:
    store = opens(server.url)
    await store.do(stamp())
    store.close()
    assert await store.do(stamp()) == 1


async def test_many_at_once(server: Server, opens: Opens) -> None:
    store = opens(server.url)
    if isinstance(store, Sync):
        return  # one connection, one caller
    done = await asyncio.gather(*(store.do(stamp(f"m{i}")) for i in range(2_000)))
    assert done == [1] * 2_000
    assert server.client.zcard("grid:models") == 2_000


def test_a_batch_tells_its_first_refusal_after_all_were_sent(server: Server) -> None:
    store = Store.connect(parse_address(server.url))
    server.client.set("grid:models", "x")
    calls: tuple[Call[Any], ...] = (limit(store.keys, "a", 9), stamp(), limit(store.keys, "a", 9))
    outcomes = store.try_all(calls)
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, True, False]
    with pytest.raises(StoreError, match="grid:models"):
        store.do_all(calls)
    (key,) = server.client.keys("limit:a:*")
    assert server.client.get(key) == b"4"
    assert store.do_all(()) == []
    server.client.delete("grid:models")
    store.close()


def test_the_clients_own_answers_are_not_changed_by_its_version(server: Server) -> None:
    """Replies reach a reading as the server sends them, flat and as bytes."""
    store = Store.connect(parse_address(server.url))
    server.client.hset("grid:totals", mapping={"done": 1})

    def ask() -> Reading[list[Any]]:
        return (yield [("HGETALL", "grid:totals"), ("ZRANGE", "grid:due", 0, -1, "WITHSCORES")])

    assert store.read(ask()) == [[b"done", b"1"], []]
    store.close()
