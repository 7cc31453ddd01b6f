"""HTTP itself: uvicorn's protocol, with limits on heads and with refusals in cogrid's form."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cogrid.coordinator.errors import RefusedError, body_of, dialect_of
from cogrid.coordinator.exchange import DRAIN_S

HEAD_BYTES = 64 * 1024
"""Of a request line and headers that are not complete yet. The parser keeps what comes, so without
a limit one client could fill the memory; common clients send 1 kB, and other servers take 8 to
64."""

HEAD_S = 20.0
"""From a connection's begin, or from the first byte of its next request, until the headers are
complete. Without a limit a few thousand connections that never say anything use up the process'
files; a client on a bad line needs a few seconds."""

_PHRASES = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class Wire(HttpToolsProtocol):
    """One connection. Requests that are none are answered here, before any application."""

    _head = False
    _completed = False
    _head_bytes = 0
    _refused = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._have_head()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head, self._head_bytes = True, 0
        self._wait_for_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head, self._completed = False, True
        self._have_head()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        # An empty line before a request begins none, and ends the wait for the next one.
        if self.cycle is not None and self.cycle.response_complete:
            self._wait_for_head()
        inside, self._completed = self._head, False
        super().data_received(data)
        # Only what belongs to one head from its first byte to its last is counted: the end of a
        # body may come together with the beginning of the next request.
        if inside and not self._completed and not self._refused:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                message = f"the request's headers have more than {HEAD_BYTES} bytes"
                self._refuse(RefusedError("headers_too_large", message, "send fewer"))

    def _wait_for_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._too_slow)

    def _have_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self._head:
            self.transport.close()  # nothing was asked
        elif not self._refused:
            message = f"the request's headers were not complete within {HEAD_S:g} s"
            self._refuse(RefusedError("head_too_slow", message, "send it again"))

    def send_400_response(self, msg: str) -> None:
        """What the parser could not read."""
        self._refuse(RefusedError("bad_http", "the request is not HTTP/1.1 as it should be"))

    def _refuse(self, refusal: RefusedError) -> None:
        """Answer, and end the connection when the client has had time to read that: closing at once
        while it still sends would reset the connection under the answer."""
        self._refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.close()  # inside another answer there is no place for this one
                return
            # The application waits for the rest of what turned out to be none.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = body_of(refusal, dialect_of(self._path()))
        head = (
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"cache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head % (refusal.status, _PHRASES[refusal.status], len(body)) + body)
        self.transport.write_eof()
        self.loop.call_later(DRAIN_S, self.transport.close)

    def _path(self) -> str:
        """As far as it was read."""
        url: bytes = getattr(self, "url", b"")
        return url.partition(b"?")[0].decode("latin-1")
