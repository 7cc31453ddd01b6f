"""As much of an HTTP/1.1 server as an engine needs, over asyncio streams."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    content: bytes

    def body(self) -> dict[str, Any] | None:
        """The JSON object in it; None where there is none."""
        try:
            return msgspec.json.decode(self.content, type=dict[str, Any])
        except msgspec.DecodeError:
            return None


async def read_request(reader: asyncio.StreamReader, ahead: bytes = b"") -> Asked | None:
    """The next request of a connection, None at its end. ahead: what was read of it already."""
    try:
        head = (ahead + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None
    return Asked(method, target.partition("?")[0], content)


async def read_ahead(reader: asyncio.StreamReader) -> bytes:
    """Waits until the client says something more, or b"" when it closes the connection."""
    try:
        return await reader.read(1)
    except OSError:
        return b""


class Reply:
    """The answer to one request: whole, or begun and streamed."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def whole(self, body: Any, status: int = 200, content_type: str = "") -> None:
        """All of it; what is not bytes goes out as JSON."""
        if not isinstance(body, bytes):
            body = msgspec.json.encode(body)
            content_type = content_type or "application/json; charset=utf-8"
        self._head(status, content_type or "text/plain", f"Content-Length: {len(body)}")
        self._writer.write(body)
        await self._writer.drain()

    async def begin(self, content_type: str) -> None:
        """The headers of a stream."""
        self._head(200, content_type, "Transfer-Encoding: chunked")
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """A piece of a stream."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """The proper end of a stream, as far as HTTP goes."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Breaks the connection. What was written before still gets there."""
        self._writer.close()

    def _head(self, status: int, content_type: str, length: str) -> None:
        phrase = HTTPStatus(status).phrase
        head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n"
        self._writer.write(head.encode("latin-1"))
