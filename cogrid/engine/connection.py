"""One HTTP/1.1 connection to an engine: bytes out, status, headers and body in."""

from __future__ import annotations

import asyncio
from typing import cast

import httptools
import httpx

HIGH_WATER_BYTES = 256 * 1024
"""Unread bytes at which reading from the socket stops until somebody has read them."""

HEADERS_MAX_BYTES = 64 * 1024
"""More header than this is no answer of an engine."""


class Connection(asyncio.Protocol):
    """Serves one exchange at a time: ``send``, ``head``, ``read`` to the end, and again.

    Raises httpx's transport errors, so that its callers know one family of errors only.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._answered = False
        self._complete = False
        self._reusable = False
        self._until_close = False
        self._surplus = False
        self._chunks: list[bytes] = []
        self._unread_bytes = 0
        self._header_bytes = 0
        self._reading = True
        self._failure: httpx.TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def heard(self) -> bool:
        """True once a byte of this exchange's answer has come."""
        return self._header_bytes > 0

    @property
    def ready(self) -> bool:
        """True when the next exchange may run on it. Never with bytes that nobody has read: they
        would be taken for the next answer."""
        if self._failure is not None or self._chunks:
            return False
        return not self._busy or (self._complete and self._reusable)

    def send(self, request: bytes) -> None:
        """Begins an exchange. The bytes go out as the socket takes them; a server that answers
        before it has read them all is heard."""
        if self._transport is None:
            raise httpx.WriteError("the connection was closed")
        self.status, self.headers, self._header_bytes = 0, [], 0
        self._busy, self._answered, self._complete, self._reusable = True, False, False, False
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    async def head(self) -> None:
        """Waits for ``status`` and ``headers``."""
        while not self._answered:
            await self._more()

    async def read(self) -> bytes:
        """All of the body that has arrived, at least one byte; b"" at its end."""
        while not self._chunks:
            if self._complete:
                return b""
            await self._more()
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._unread_bytes = 0
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        return data

    def abort(self) -> None:
        """Closes it at once, whatever is under way on it; the engine sees that and stops."""
        self._fail(httpx.ReadError("the connection was closed"))

    async def _more(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failure: httpx.TransportError) -> None:
        if self._failure is None:
            self._failure = failure
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        self._wake()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        if not self._busy or self._complete:
            # Nobody asked for this: it would be taken for the next answer.
            return self._fail(httpx.RemoteProtocolError("bytes that belong to no request"))
        if not self._answered:
            self._header_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            return self._fail(httpx.RemoteProtocolError(f"the answer is not HTTP: {error}"))
        if not self._answered:
            if self._header_bytes > HEADERS_MAX_BYTES:
                self._fail(httpx.RemoteProtocolError("the answer is all headers"))
            return None
        if self._unread_bytes > HIGH_WATER_BYTES and self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()
        return self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answered and self._until_close and exc is None:
            self._complete = True
        self._fail(httpx.ReadError(str(exc or "the connection was closed")))

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._surplus = self._complete  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._surplus:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:  # 100 Continue and its like only announce the answer
            self.headers = []
            return
        sized = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        self._until_close = not sized and self.status not in (204, 304)
        self._answered = True

    def on_body(self, body: bytes) -> None:
        if self._surplus:
            return
        self._chunks.append(body)
        self._unread_bytes += len(body)

    def on_message_complete(self) -> None:
        if self._answered:
            self._complete = True
            self._reusable = self._parser.should_keep_alive() and not self._surplus
