"""Servers that say on the wire exactly what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(speak: Speak) -> AsyncIterator[str]:
    """Listens, and gives each connection to ``speak``; nothing of it is left at the end."""
    open_ones: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await speak(reader, writer)
        finally:
            open_ones.discard(task)
            writer.close()

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        waiting = tuple(open_ones)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes what was aborted


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Takes everything and says nothing."""
    await reader.read()


async def head(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request."""
    return await reader.readuntil(b"\r\n\r\n")
