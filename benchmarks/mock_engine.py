"""An engine that is no bottleneck: ``python -m benchmarks.mock_engine --port P``.

It answers as many at once as are asked, by bytes that were made before. ``max_tokens`` (OpenAI) or
``num_predict`` (Ollama) says how many tokens, the model's name how many milliseconds lie before
each (``mock``: none, ``mock-20ms``: 20). A streamed token is always a write of its own, as it is
with every engine: they have one token at a time to send.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import uvloop

from benchmarks.mock_answers import Answer, Asked, asked, listing, ollama_answer, openai_answer

_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_NOT_FOUND = b'HTTP/1.1 404 Not Found\r\nContent-Length: 24\r\n\r\n{"error":"no such path"}'
_CHATS: dict[bytes, tuple[Callable[[Asked], Answer], bool]] = {
    b"/v1/chat/completions": (openai_answer, False),
    b"/api/chat": (ollama_answer, True),
}


class Mock(asyncio.Protocol):
    """One connection; requests on it are answered one after another."""

    def __init__(self, dialect: str, connected: set[Mock]) -> None:
        self._dialect = dialect
        self._connected = connected
        self._data = b""
        self._next: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write: Callable[[bytes], None] = transport.write  # type: ignore[attr-defined]
        self.close = transport.close
        self._loop = asyncio.get_running_loop()
        self._connected.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connected.discard(self)
        if self._next:
            self._next.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._data, 0, end + 2)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < size:
                return
            request, self._data = self._data[:size], self._data[size:]
            self._answer(request.split(b" ", 2)[1], request[end + 4 :])

    def _answer(self, path: bytes, body: bytes) -> None:
        chat = _CHATS.get(path)
        if chat is None:
            self._write(listing(path, self._dialect) or _NOT_FOUND)
            return
        make, streams = chat
        wanted = asked(body, streams)
        answer = make(wanted)
        if wanted.streamed:
            self._write(answer.head)
            self._speak(answer, 0, self._loop.time(), wanted.delay_ms / 1000)
        else:
            self._write(answer.whole)

    def _speak(self, answer: Answer, n: int, start_s: float, delay_s: float) -> None:
        """Each token at its own time after the start, so that delays do not add up."""
        if n:
            self._write(answer.pieces[n - 1])
        if n == len(answer.pieces):
            self._write(answer.end)
            return
        if delay_s:
            at_s = start_s + (n + 1) * delay_s
            self._next = self._loop.call_at(at_s, self._speak, answer, n + 1, start_s, delay_s)
        else:
            self._next = self._loop.call_soon(self._speak, answer, n + 1, start_s, delay_s)


@asynccontextmanager
async def serve(port: int, dialect: str) -> AsyncGenerator[int, None]:
    """Listens on loopback and gives the port; 0 takes any free one."""
    connected: set[Mock] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Mock(dialect, connected), "127.0.0.1", port, backlog=1024
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for mock in connected:
            mock.close()


async def _run(port: int, dialect: str) -> None:
    async with serve(port, dialect):
        await asyncio.Event().wait()


def main() -> None:
    """Runs until it is ended."""
    parser = argparse.ArgumentParser(prog="benchmarks.mock_engine")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dialect", choices=("openai", "ollama"), default="openai")
    options = parser.parse_args()
    uvloop.run(_run(options.port, options.dialect))


if __name__ == "__main__":
    main()
