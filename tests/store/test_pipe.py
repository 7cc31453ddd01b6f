"""The fast connection by itself: order, cancelled callers, closing, time limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import hiredis
import pytest

from cogrid.store.address import parse_address
from cogrid.store.async_client import AsyncStore
from cogrid.store.pipe import Pipe
from cogrid.store.refusal import StoreError
from tests.proxy import Proxy
from tests.servers import Server
from tests.wait import until_async


@pytest.fixture
async def pipe(server: Server) -> AsyncIterator[Pipe]:
    made = Pipe(parse_address(server.url))
    yield made
    made.close()


async def test_answers_come_in_order(pipe: Pipe) -> None:
    asked = [str(i).encode() for i in range(500)]
    assert await asyncio.gather(*(pipe.call("ECHO", word) for word in asked)) == asked


async def test_errors_are_raised_or_returned(pipe: Pipe) -> None:
    with pytest.raises(StoreError, match="wrong number of arguments"):
        await pipe.call("GET")
    one, two = await pipe.send_all([("GET",), ("PING",)])
    assert isinstance(one, hiredis.ReplyError)
    assert two in ("PONG", b"PONG")


async def test_numbers_and_bytes_are_sent_as_they_are(pipe: Pipe) -> None:
    assert await pipe.call("ECHO", 7) == b"7"
    assert await pipe.call("ECHO", b"\x00\r\n$") == b"\x00\r\n$"


async def test_a_caller_that_was_cancelled_takes_nobodys_answer(pipe: Pipe) -> None:
    await pipe.call("PING")
    gone = asyncio.create_task(pipe.call("ECHO", "gone"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await pipe.call("ECHO", "mine") == b"mine"
    assert gone.cancelled() or await asyncio.wait([gone])


async def test_callers_share_one_connection(server: Server) -> None:
    with Proxy(server.port) as proxy:
        pipe = Pipe(parse_address(f"redis://127.0.0.1:{proxy.port}"))
        await asyncio.gather(*(pipe.call("PING") for _ in range(20)))
        assert proxy.connections == 1
        proxy.cut()
        await asyncio.gather(*(pipe.call("PING") for _ in range(20)), return_exceptions=True)
        assert await pipe.call("PING")
        assert proxy.connections == 2
        pipe.close()


async def test_all_who_wait_are_told_when_it_breaks(server: Server) -> None:
    with Proxy(server.port) as proxy:
        pipe = Pipe(parse_address(f"redis://127.0.0.1:{proxy.port}"))
        await pipe.call("PING")
        proxy.black_hole()
        waiting = [asyncio.create_task(pipe.call("PING")) for _ in range(5)]
        await asyncio.sleep(0)
        proxy.cut()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in done] == [StoreError] * 5
        pipe.close()


async def test_a_connection_that_is_cancelled_by_closing_says_so(server: Server) -> None:
    with Proxy(server.port) as proxy:
        proxy.black_hole()
        pipe = Pipe(parse_address(f"redis://127.0.0.1:{proxy.port}", password="x"))
        waiting = asyncio.create_task(pipe.call("PING"))
        await until_async(lambda: proxy.connections == 1)
        pipe.close()
        with pytest.raises(StoreError, match="closed"):
            await waiting


async def test_a_caller_that_is_cancelled_while_connecting_is_cancelled(server: Server) -> None:
    with Proxy(server.port) as proxy:
        proxy.black_hole()
        pipe = Pipe(parse_address(f"redis://127.0.0.1:{proxy.port}", password="x"))
        waiting = asyncio.create_task(pipe.call("PING"))
        await until_async(lambda: proxy.connections == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pipe.close()


async def test_a_limit_holds_also_after_closing_and_opening(server: Server) -> None:
    with Proxy(server.port) as proxy:
        pipe = Pipe(parse_address(f"redis://127.0.0.1:{proxy.port}"), reply_s=0.1)
        for _ in range(2):
            await pipe.call("PING")
            pipe.close()
        await pipe.call("PING")
        proxy.black_hole()
        with pytest.raises(StoreError, match="no answer in time"):
            await asyncio.wait_for(pipe.call("PING"), 5)
        pipe.close()


async def test_a_hint_wakes_who_waits(server: Server) -> None:
    store = AsyncStore(parse_address(server.url))
    inbox, other = store.keys.inbox("me"), store.keys.inbox("other")
    waiting = asyncio.create_task(store.wait((other, inbox), 30))
    await until_async(lambda: server.client.info("clients")["blocked_clients"] == 1)
    await store.nudge("me", "t1")
    assert await waiting == (inbox, "t1")
    assert await store.wait((inbox,), 0.01) is None
    for task in ("a", "b", "c"):
        await store.nudge("me", task)
    assert await store.take_hints(inbox, 2) == ("a", "b")
    assert await store.take_hints(inbox, 9) == ("c",)
    assert await store.take_hints(inbox, 9) == ()
    store.close()


async def test_a_word_that_nobody_asked_for_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that lets nobody in any more says so before it closes."""
    full = b"-ERR max number of clients reached\r\n"
    begun: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.append(writer)
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n" + full if len(begun) == 1 else full)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    pipe = Pipe(parse_address(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    assert await pipe.call("PING") in ("PONG", b"PONG")
    with pytest.raises(StoreError, match="has all the clients it takes") as told:
        await pipe.call("PING")
    assert (told.value.code, told.value.passing, len(begun)) == ("MAXCLIENTS", True, 2)
    assert not [record for record in caplog.records if record.name == "asyncio"]
    pipe.close()
    for writer in begun:
        writer.close()
    server.close()


async def test_a_wait_that_the_server_unblocks_is_a_passing_error(server: Server) -> None:
    store = AsyncStore(parse_address(server.url))
    waiting = asyncio.create_task(store.wait((store.keys.inbox("me"),), 30))
    await until_async(lambda: server.client.info("clients")["blocked_clients"] == 1)
    (blocked,) = [one for one in server.client.client_list() if one["cmd"] == "bzpopmin"]
    server.client.client_unblock(int(blocked["id"]), error=True)
    with pytest.raises(StoreError) as told:
        await waiting
    assert (told.value.code, told.value.passing) == ("UNBLOCKED", True)
    store.close()


async def test_closing_twice_is_closing(pipe: Pipe) -> None:
    await pipe.call("PING")
    pipe.close()
    pipe.close()
