"""One HTTP exchange over bare ASGI: the request in, the answer out, and whether anybody listens.

The connection's closing is the only sign that a client has left, so from the moment the request is
read somebody always waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cogrid.coordinator.errors import RefusedError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_S = 5.0
"""What is still read of a refused body, so that the client sees the answer and not a reset."""


class LeftError(Exception):
    """The client has closed its connection."""


class Exchange:
    """headers: names in lower case. gone: the client has left. started: the status is out.
    complete: the answer is, too."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self.gone = False
        self.started = False
        self.complete = False
        self.status = 0
        self.left: Callable[[], None] | None = None
        self._receive = receive
        self._send = send
        self._unread = True
        self._watching: asyncio.Task[None] | None = None

    def header(self, name: bytes) -> str:
        """A header's value, "" where it is absent; what is no Latin-1 text cannot occur."""
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self, most_bytes: int) -> bytes:
        """The whole body. RefusedError 413 as soon as it is known to be larger; LeftError."""
        said = self.headers.get(b"content-length", b"")
        if said.isdigit() and int(said) > most_bytes:
            raise too_large(int(said), most_bytes)
        message = await self._next()
        if not message.get("more_body"):
            first: bytes = message["body"]
            self._unread = False
            if len(first) > most_bytes:
                raise too_large(len(first), most_bytes)
            return first
        parts, size = [message["body"]], len(message["body"])
        while message.get("more_body"):
            if size > most_bytes:
                raise too_large(size, most_bytes)
            message = await self._next()
            parts.append(message["body"])
            size += len(message["body"])
        self._unread = False
        if size > most_bytes:
            raise too_large(size, most_bytes)
        return b"".join(parts)

    def watch(self) -> None:
        """Begin to wait for the connection to close; ``left`` is called when it does."""
        self._watching = asyncio.create_task(self._watch())

    async def pause(self, seconds: float) -> None:
        """Let time pass; LeftError as soon as the client leaves."""
        assert self._watching is not None
        await asyncio.wait((self._watching,), timeout=seconds)
        self.stay()

    def stay(self) -> None:
        """LeftError where the client has left."""
        if self.gone:
            raise LeftError

    async def start(self, status: int, headers: list[Header]) -> None:
        """Send the status and the headers of an answer that comes in pieces."""
        self.started = True
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, body: bytes) -> None:
        """Send a piece; waits while the client reads more slowly than we write."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def finish(self, body: bytes = b"") -> None:
        """Send the last piece."""
        self.complete = True
        await self._send({"type": "http.response.body", "body": body})

    async def reply(self, status: int, body: bytes, headers: list[Header]) -> None:
        """Send a whole answer."""
        length = (b"content-length", b"%d" % len(body))
        if not self._unread or self.method in ("GET", "HEAD"):
            await self.start(status, [*headers, length])
            await self.finish(body)
            return
        await self.start(status, [*headers, length, (b"connection", b"close")])
        await self.write(body)
        await self._drain()
        await self.finish()

    def close(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = True
            raise LeftError
        return message

    async def _drain(self) -> None:
        seen = 0
        try:
            async with asyncio.timeout(DRAIN_S):
                while seen < DRAIN_BYTES:
                    message = await self._next()
                    seen += len(message["body"])
                    if not message.get("more_body"):
                        return
        except (TimeoutError, LeftError):
            return

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self.complete:
            return
        self.gone = True
        if self.left is not None:
            self.left()


def too_large(size: int, most_bytes: int) -> RefusedError:
    """The refusal of a body above the limit."""
    message = f"the request has {size} bytes or more, the limit is {most_bytes}"
    return RefusedError("body_too_large", message, "limits.body_max_bytes is where that is set")
