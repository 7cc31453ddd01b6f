"""A TCP proxy between a client and a server, with faults that a test switches on and off."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

CHUNK_BYTES = 65536


class Proxy:
    """Passes bytes on between ``127.0.0.1:port`` and a server there or on a unix socket.

    It runs in a thread of its own, so it serves blocking and asyncio clients alike. delay_s: how
    long each piece waits before it goes on, both ways. connections: how many were ever accepted.
    """

    def __init__(self, upstream: int | str) -> None:
        """upstream: a loopback port, or the path of a unix socket."""
        self._upstream = upstream
        self._refusing = False
        self._budget: dict[str, int | None] = {"requests": None, "answers": None}
        self._marks: dict[str, bytes] = {"requests": b"", "answers": b""}
        self._from: tuple[bytes, int] | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self.delay_s = 0.0
        self.connections = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self, *, refuse: bool = False) -> None:
        """Closes every connection at once; refuse: and every new one, until ``heal``."""
        self._refusing = refuse
        self._call(self._drop_all)

    def black_hole(self) -> None:
        """Lets connections stand and be made, but passes nothing on until ``heal``, as a network
        that loses packets does: what was sent meanwhile arrives then."""
        self._call(self._passing.clear)

    def cut_requests_after(self, count_bytes: int, mark: bytes = b"") -> None:
        """Passes so many bytes on to the server, counted from now over all connections, then
        cuts that connection: a command that arrives in part, or not at all. mark: counted from
        the first piece on that holds these bytes."""
        if mark:
            self._from = (mark, count_bytes)
        else:
            self._budget["requests"] = count_bytes

    def cut_answers_after(self, count_bytes: int) -> None:
        """The same on the way back: the server has done it, and the client never learns."""
        self._budget["answers"] = count_bytes

    def lose_requests_with(self, mark: bytes) -> None:
        """Cuts each connection on which a request with these bytes comes by: it never arrives."""
        self._marks["requests"] = mark

    def lose_answers_to(self, mark: bytes) -> None:
        """Passes requests with these bytes on, and cuts the connection in place of the answer:
        the server has done it, and the client never learns."""
        self._marks["answers"] = mark

    def heal(self) -> None:
        """Ends every fault."""
        self._call(self._heal)

    def close(self) -> None:
        """Closes everything and ends the thread."""
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, what: Callable[[], None]) -> None:
        """Runs it in the proxy's thread and waits, so that the fault stands when we return."""

        async def run() -> None:
            what()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _heal(self) -> None:
        self._refusing = False
        self.delay_s = 0.0
        self._budget = {"requests": None, "answers": None}
        self._marks = {"requests": b"", "answers": b""}
        self._from = None
        self._passing.set()

    def _drop_all(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _shut(self) -> None:
        self._server.close()
        self._drop_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, int):
            return await asyncio.open_connection("127.0.0.1", self._upstream)
        return await asyncio.open_unix_connection(self._upstream)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            if not self._refusing:
                await self._both_ways(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # the fault that was asked for, or close()
        finally:
            writer.transport.abort()
            self._open.discard(writer)
            self._tasks.discard(task)

    async def _both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await self._connect()
        self._open.add(up_writer)
        mute = asyncio.Event()
        ways = [
            asyncio.create_task(self._pass(reader, up_writer, "requests", mute)),
            asyncio.create_task(self._pass(up_reader, writer, "answers", mute)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up_writer.transport.abort()
            self._open.discard(up_writer)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str,
        mute: asyncio.Event,
    ) -> None:  # fmt: skip
        """mute: set where the next answer of this connection is lost."""
        # With no buffer allowed drain() waits until everything has left, so that a cut behind it
        # cuts exactly there.
        writer.transport.set_write_buffer_limits(high=0)
        while data := await reader.read(CHUNK_BYTES):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            await self._passing.wait()
            if way == "answers" and mute.is_set():
                return
            if way == "requests" and self._lost(data, mute):
                return
            budget = self._budget[way]
            if budget is not None:
                # Before anything is waited for: afterwards the fault may have been healed.
                self._budget[way] = max(0, budget - len(data))
            writer.write(data if budget is None else data[:budget])
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            if budget is not None and budget < len(data):
                return

    def _lost(self, data: bytes, mute: asyncio.Event) -> bool:
        """Whether this piece of requests goes no further; may mute what will be answered."""
        if self._marks["answers"] and self._marks["answers"] in data:
            mute.set()
        if self._from is not None and self._from[0] in data:
            self._budget["requests"] = self._from[1]
            self._from = None
        return bool(self._marks["requests"]) and self._marks["requests"] in data
