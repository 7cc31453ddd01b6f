"""The fast connection: every call of one turn of the event loop goes out in one write.

redis-py spends 91 µs of CPU on a call with one in flight, this 13 µs (docs/design/speed.md); what
is here is only what that takes: framing by hiredis, in-order replies, reconnecting, time limits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

import hiredis

from cogrid.store.address import CONNECT_S, Address
from cogrid.store.refusal import StoreError, refusal, silence

_Waiter = asyncio.Future[Any]


class _Wire(asyncio.Protocol):
    """One connection: bytes in, replies to those who wait, in order."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.waiting: deque[tuple[_Waiter, float]] = deque()
        self.lost: StoreError | None = None
        self._reader = hiredis.Reader(replyError=hiredis.ReplyError)
        self._transport: asyncio.WriteTransport | None = None
        self._buffer: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.WriteTransport, transport)

    def send(self, command: bytes, limit_s: float) -> _Waiter:
        """Queue a command for this turn's write. limit_s: when its reply is overdue. A connection
        that was lost since the caller got it is told at once: nobody would look at it again."""
        if self.lost is not None:
            raise self.lost
        waiter: _Waiter = self._loop.create_future()
        self.waiting.append((waiter, self._loop.time() + limit_s))
        if not self._buffer:
            self._loop.call_soon(self._flush)
        self._buffer.append(command)
        return waiter

    def _flush(self) -> None:
        if self._transport is not None and not self.lost:
            self._transport.write(b"".join(self._buffer))
        self._buffer.clear()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while True:
            try:
                reply = self._reader.gets()
            except hiredis.ProtocolError as error:
                self.drop(error)
                return
            if reply is False:
                return
            if not self.waiting:
                # An error that goes before the end, such as that there are too many clients.
                self.drop(reply)
                return
            waiter, _ = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or "the connection was closed")

    def drop(self, cause: object) -> None:
        """Give the connection up; everybody who waits is told."""
        self._fail(cause)
        if self._transport is not None:
            self._transport.abort()

    def overdue(self) -> bool:
        """True when the oldest reply should have come by now."""
        return bool(self.waiting) and self.waiting[0][1] < self._loop.time()

    def _fail(self, cause: object) -> None:
        if self.lost is None:
            self.lost = silence(self.shown, cause)
        while self.waiting:
            waiter, _ = self.waiting.popleft()
            if not waiter.done():
                waiter.set_exception(self.lost)


class Pipe:
    """A connection that comes back. Connects at the first call; a call that fails says so at once,
    and the next one connects again."""

    def __init__(self, address: Address, reply_s: float = 5.0) -> None:
        self._address = address
        self._reply_s = reply_s
        self._wire: _Wire | None = None
        self._connecting: asyncio.Task[_Wire] | None = None
        self._watch: asyncio.TimerHandle | None = None

    async def call(self, *command: Any, limit_s: float | None = None) -> Any:
        """One command, its raw reply. StoreError for a refusal or a lost connection."""
        reply = await self.send(command, limit_s)
        if isinstance(reply, hiredis.ReplyError):
            raise refusal(self._address.shown, str(reply))
        return reply

    async def send(self, command: Iterable[Any], limit_s: float | None = None) -> Any:
        """One command; an error reply is returned, not raised."""
        wire = self._wire
        if wire is None or wire.lost:
            wire = await self._connect()
        packed = hiredis.pack_command(tuple(_plain(part) for part in command))
        return await wire.send(packed, limit_s or self._reply_s)

    async def send_all(self, commands: Iterable[Iterable[Any]]) -> list[Any]:
        """Commands in one write; error replies are returned, not raised."""
        wire = self._wire
        if wire is None or wire.lost:
            wire = await self._connect()
        waiters = [
            wire.send(hiredis.pack_command(tuple(_plain(p) for p in command)), self._reply_s)
            for command in commands
        ]
        return await asyncio.gather(*waiters)

    def close(self) -> None:
        """Close it; calls under way fail."""
        if self._watch:
            self._watch.cancel()
            self._watch = None
        if self._connecting:
            self._connecting.cancel()
        if self._wire:
            self._wire.drop("closed")
        self._wire = None

    async def _connect(self) -> _Wire:
        # Callers that find it lost at the same time share one attempt.
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._open())
            # Its failure is told to whoever still waits; nobody may.
            self._connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
        connecting, task = self._connecting, asyncio.current_task()
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if task is None or task.cancelling() or not connecting.cancelled():
                raise
            raise silence(self._address.shown, "closed") from None

    async def _open(self) -> _Wire:
        address, wire = self._address, _Wire(self._address.shown)
        try:
            async with asyncio.timeout(CONNECT_S):
                await _reach(address, wire)
                for command in _greeting(address):
                    reply = await wire.send(hiredis.pack_command(command), CONNECT_S)
                    if isinstance(reply, hiredis.ReplyError):
                        raise refusal(address.shown, str(reply))
        except (OSError, TimeoutError) as error:
            wire.drop(error)
            raise silence(address.shown, str(error) or "no answer in time") from error
        except BaseException as error:
            wire.drop(error)
            raise
        self._wire = wire
        if self._watch is None:
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(self._reply_s / 5, self._look)
        return wire

    def _look(self) -> None:
        if self._wire and not self._wire.lost and self._wire.overdue():
            self._wire.drop("no answer in time")
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(self._reply_s / 5, self._look)


async def _reach(address: Address, wire: _Wire) -> None:
    loop = asyncio.get_running_loop()
    if address.path:
        await loop.create_unix_connection(lambda: wire, address.path)
    else:
        tls = address.ssl_context()
        await loop.create_connection(lambda: wire, address.host, address.port, ssl=tls)


def _greeting(address: Address) -> list[tuple[Any, ...]]:
    greeting: list[tuple[Any, ...]] = []
    if address.password is not None:
        user = (address.username,) if address.username else ()
        greeting.append(("AUTH", *user, address.password))
    if address.db:
        greeting.append(("SELECT", str(address.db)))
    return greeting


def _plain(part: Any) -> Any:
    return part if isinstance(part, (str, bytes)) else str(part)
