"""The transport against servers that do odd things on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from cogrid.engine import connection, transport
from cogrid.engine.transport import EngineTransport
from tests.engine.wire import Speak, head, server, silent
from tests.wait import until_async

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"


def saying(*parts: bytes) -> Speak:
    """Writes the parts one by one and closes the connection."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.005)

    return speak


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=EngineTransport(), timeout=5) as opened:
        yield opened


@pytest.mark.parametrize(
    "parts",
    [
        (HI,),
        (OK, b"Content-Length: 2\r\n", b"\r\nh", b"i"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\n\r\n",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r", b"\nh\r\n1\r\ni\r\n0\r\n", b"A: b\r\n\r\n"),
        (OK + b"\r\nh", b"i"),
        (b"HTTP/1.0 200 OK\r\n\r\nhi",),
        (b"HTTP/1.1 100 Continue\r\n\r\n", HI),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HI,),
    ],
)
async def test_answers(parts: tuple[bytes, ...]) -> None:
    async with server(saying(*parts)) as url, client() as asked:
        response = await asked.get(url)
        assert (response.status_code, response.content) == (200, b"hi")
        assert "link" not in response.headers


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_answers_without_a_body(status: bytes) -> None:
    async with server(saying(b"HTTP/1.1 " + status + b"\r\n\r\n")) as url, client() as asked:
        assert (await asked.get(url)).content == b""


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), httpx.RemoteProtocolError),
        ((OK, b"X: " + b"y" * connection.HEADERS_MAX_BYTES), httpx.RemoteProtocolError),
        ((), httpx.ReadError),
        ((OK,), httpx.ReadError),
        ((OK + b"Content-Length: 3\r\n\r\nhi",), httpx.ReadError),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",), httpx.ReadError),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",), httpx.TransportError),
    ],
)
async def test_what_is_no_answer(parts: tuple[bytes, ...], error: type[Exception]) -> None:
    async with server(saying(*parts)) as url, client() as asked:
        with pytest.raises(error):
            await asked.get(url)


async def test_the_request_on_the_wire() -> None:
    heard: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await head(reader) + await reader.readexactly(4))
        writer.write(HI)

    async with server(speak) as url, client() as asked:
        assert (await asked.post(f"{url}/a%20b?c=d", content=b"body")).content == b"hi"
    place = url.removeprefix("http://").encode()
    first, *lines = heard[0].split(b"\r\n")
    assert first == b"POST /a%20b?c=d HTTP/1.1"
    assert {b"Host: " + place, b"Content-Length: 4"} <= set(lines)
    assert lines[-2:] == [b"", b"body"]


async def test_an_answer_that_came_and_was_not_read_is_never_the_next_ones() -> None:
    """Whoever stops reading leaves bytes behind, which may be somebody's; the connection goes."""
    seen: list[int] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(1)
        while asks := await head(reader):
            writer.write(OK + b"Content-Length: 6\r\n\r\n" + asks.split()[1][1:].ljust(6, b"."))

    async with server(speak) as url, client() as asked:
        async with asked.stream("GET", f"{url}/mine") as response:
            assert response.status_code == 200
        assert (await asked.get(f"{url}/yours")).content == b"yours."
    assert len(seen) == 2


async def _twice(url: str, asked: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await asked.get(url)).content == b"hi"


def _counting(seen: list[int], *, extra: bytes = b"", answer: bytes = HI) -> Speak:
    """Answers everything on a connection and counts connections."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(1)
        while await head(reader):
            writer.write(answer + extra)

    return speak


async def test_a_connection_is_used_again() -> None:
    seen: list[int] = []
    async with server(_counting(seen)) as url, client() as asked:
        await _twice(url, asked)
    assert len(seen) == 1


async def test_not_where_the_server_closes_it() -> None:
    seen: list[int] = []
    closing = OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi"
    async with server(_counting(seen, answer=closing)) as url, client() as asked:
        await _twice(url, asked)
    assert len(seen) == 2


async def test_not_where_bytes_came_that_nobody_asked_for() -> None:
    seen: list[int] = []
    async with server(_counting(seen, extra=HI)) as url, client() as asked:
        await _twice(url, asked)
    assert len(seen) == 2


async def test_not_after_it_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(transport, "IDLE_S", -1.0)
    async with server(_counting(seen)) as url, client() as asked:
        await _twice(url, asked)
    assert len(seen) == 2


async def test_not_after_the_server_has_gone() -> None:
    kept = EngineTransport()
    async with server(saying(HI)) as url, httpx.AsyncClient(transport=kept) as asked:
        for _ in range(2):
            assert (await asked.get(url)).content == b"hi"
            await until_async(lambda: not any(conn.ready for _, conn in kept._idle))


async def test_a_server_that_closes_just_as_it_is_asked_again() -> None:
    """llama.cpp's closes after each stream without a word; the next request may cross that."""
    asked_for: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked_for.append(await head(reader))
        writer.write(HI)
        await reader.read(1)
        writer.transport.abort()

    async with server(speak) as url, client() as asked:
        await _twice(url, asked)
    assert len(asked_for) == 2


async def test_but_a_request_is_not_sent_twice_where_the_server_had_time_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A prompt that kills its engine must not be put to the next one by this."""
    monkeypatch.setattr(transport, "STALE_S", 0.0)
    heads: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await head(reader))
        writer.write(HI)
        heads.append(await head(reader))

    async with server(speak) as url, client() as asked:
        await asked.get(url)
        with pytest.raises(httpx.ReadError):
            await asked.get(url)
    assert len(heads) == 2


async def test_waits_no_longer_than_it_is_told() -> None:
    async with server(silent) as url, client() as asked:
        with pytest.raises(httpx.ReadTimeout):
            await asked.get(url, timeout=httpx.Timeout(5, read=0.05))


async def test_a_slow_reader_slows_the_server_down() -> None:
    """What nobody reads stays in the sockets and not in this process."""
    sent = 0

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await head(reader)
        writer.write(OK + b"\r\n")
        for _n in range(1000):
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with server(speak) as url, client() as asked, asked.stream("GET", url) as response:
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.05)
        assert sent < 16 * 2**20
        total = sum([len(data) async for data in response.aiter_raw()])
    assert total == 1000 * 65536


async def test_closing_it_closes_what_is_kept() -> None:
    gone: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(HI)
        gone.append(await reader.read())

    async with server(speak) as url:
        async with client() as asked:
            await asked.get(url)
        await until_async(lambda: gone == [b""])
