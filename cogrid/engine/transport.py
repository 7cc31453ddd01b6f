"""HTTP/1.1 to one engine, as a transport for httpx that costs little.

httpx brings a transport of its own; it spends more than a millisecond of CPU on a request and
about 18 us on a streamed token, most of it in its pool and in a parser that hands out every chunk
by itself. This one parses in C and hands out whatever has arrived at once; docs/design/engine.md
has the figures. It knows neither proxies nor HTTP/2: an engine is beside the worker.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from typing import TypeVar

import httpx

from cogrid.engine.connection import Connection

T = TypeVar("T")

IDLE_S = 4.0
"""How long a connection is kept for the next request. llama.cpp's server and uvicorn (vLLM) close
an idle one after 5 s; a request must not meet that moment."""

STALE_S = 0.2
"""A kept connection that is closed so soon after a request, without a byte of an answer, was closed
before the server saw that request: it is sent again on a new one. llama.cpp's server closes each
connection a moment after a stream and does not say so before."""


class EngineTransport(httpx.AsyncBaseTransport):
    """Connections are kept after a complete answer and closed at once in every other case.

    There is no limit on their number: the worker's slots are one.
    """

    def __init__(self) -> None:
        self._idle: list[tuple[float, Connection]] = []
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeout = request.extensions.get("timeout", {})
        data = _head(request) + await request.aread()
        kept = self._kept()
        if kept is not None:
            began_s = time.monotonic()
            try:
                return await self._exchange(kept, data, timeout.get("read"))
            except httpx.NetworkError:
                if kept.heard or time.monotonic() - began_s > STALE_S:
                    raise
        connection = await self._connect(request.url, timeout.get("connect"))
        return await self._exchange(connection, data, timeout.get("read"))

    async def aclose(self) -> None:
        self._closed = True
        for _, connection in self._idle:
            connection.abort()
        self._idle.clear()

    async def _exchange(
        self, connection: Connection, data: bytes, timeout_s: float | None
    ) -> httpx.Response:
        try:
            connection.send(data)
            await _within(timeout_s, connection.head())
        except BaseException:
            connection.abort()
            raise
        body = _Body(self, connection, timeout_s)
        return httpx.Response(connection.status, headers=connection.headers, stream=body)

    def release(self, connection: Connection) -> None:
        """Takes a connection back; only one whose answer was read to the end is kept."""
        if connection.ready and not self._closed:
            self._idle.append((time.monotonic(), connection))
        else:
            connection.abort()

    def _kept(self) -> Connection | None:
        """The connection used last, if it is still good."""
        oldest_s = time.monotonic() - IDLE_S
        while self._idle:
            since_s, connection = self._idle.pop()
            if since_s >= oldest_s and connection.ready:
                return connection
            connection.abort()
        return None

    async def _connect(self, url: httpx.URL, timeout_s: float | None) -> Connection:
        secure = url.scheme == "https"
        if secure and self._tls is None:
            self._tls = httpx.create_ssl_context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(
                    Connection,
                    url.host,
                    url.port or (443 if secure else 80),
                    ssl=self._tls if secure else None,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {timeout_s:g} s") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection


class _Body(httpx.AsyncByteStream):
    def __init__(
        self, transport: EngineTransport, connection: Connection, timeout_s: float | None
    ) -> None:
        self._transport = transport
        self._connection: Connection | None = connection
        self._timeout_s = timeout_s

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        data = await _within(self._timeout_s, self._connection.read())
        if not data:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.release(connection)


async def _within(timeout_s: float | None, waiting: Coroutine[None, None, T]) -> T:
    if timeout_s is None:
        return await waiting
    try:
        async with asyncio.timeout(timeout_s):
            return await waiting
    except TimeoutError as error:
        raise httpx.ReadTimeout(f"nothing came within {timeout_s:g} s") from error


def _head(request: httpx.Request) -> bytes:
    first = b"%s %s HTTP/1.1\r\n" % (request.method.encode(), request.url.raw_path)
    return first + b"".join(b"%s: %s\r\n" % pair for pair in request.headers.raw) + b"\r\n"
