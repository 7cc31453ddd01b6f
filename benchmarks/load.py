"""Chats as fast as they are answered, from a process of its own.

``python -m benchmarks.load JSON``: see ``Asking`` and ``Loaded``.

to nothing beside what it measures: kept connections, no parsing beyond where an answer ends.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import msgspec
import uvloop

from benchmarks.mock_answers import MARK

ANSWER_S = 60.0
"""An answer that takes longer counts as an error, and so do those still to come on its line."""
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked: ``clients`` lines, ``requests`` in all, ``tokens`` each. model: says the delay
    between tokens, see the mock engine."""

    url: str
    clients: int
    requests: int
    tokens: int
    streamed: bool
    model: str = "mock"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of it. seconds: from the first request to the last answer. Latencies in ms; first:
    to the first token. errors: answers with another status than 200, or with too few tokens."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    first_p50_ms: float
    first_p99_ms: float
    tokens: int
    errors: int
    cpu_s: float
    trouble: str = ""

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds


@dataclass(slots=True)
class _Tally:
    """What all lines have seen so far, and how many requests are left to make."""

    left: int
    whole_s: list[float] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    tokens: int = 0
    errors: int = 0
    trouble: str = ""

    def take(self) -> bool:
        """One more request may be made."""
        self.left -= 1
        return self.left >= 0


class _Line(asyncio.Protocol):
    """One kept connection, one request at a time."""

    def __init__(self, request: bytes, tokens: int, tally: _Tally) -> None:
        self._request, self._expected, self._tally = request, tokens, tally
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write: Callable[[bytes], None] = transport.write  # type: ignore[attr-defined]
        self.close = transport.close
        self._next()

    def _next(self) -> None:
        if not self._tally.take():
            if not self.over.done():
                self.over.set_result(None)
            return
        self._head = b""
        self._status = 0
        self._size = -1
        self._seen = self._tokens = 0
        self._tail = b""
        self._sent_s = time.perf_counter()
        self._write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._status:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            self._status = int(self._head[9:12])
            length = _LENGTH.search(self._head, 0, end + 2)
            self._size = int(length[1]) if length else -1
            data = self._head[end + 4 :]
        self._body(data)

    def _body(self, data: bytes) -> None:
        found = data.count(MARK)
        if found and not self._tokens:
            self._tally.first_s.append(time.perf_counter() - self._sent_s)
        self._tokens += found
        self._seen += len(data)
        self._tail = (self._tail + data)[-len(_LAST_CHUNK) :]
        if self._seen == self._size or (self._size < 0 and self._tail == _LAST_CHUNK):
            self._answered(data)

    def _answered(self, data: bytes) -> None:
        tally = self._tally
        tally.whole_s.append(time.perf_counter() - self._sent_s)
        tally.tokens += self._tokens
        if self._status != 200 or self._tokens != self._expected:
            tally.errors += 1
            tally.trouble = tally.trouble or (
                f"status {self._status}, {self._tokens} tokens of {self._expected}: "
                f"{data[-300:].decode(errors='replace')}"
            )
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self._tally.errors += 1
            self._tally.trouble = self._tally.trouble or f"connection lost: {exc}"
            self.over.set_result(None)


async def load(asking: Asking) -> Loaded:
    """Makes all requests and waits for the last answer."""
    parts = urlsplit(asking.url)
    loop = asyncio.get_running_loop()
    tally = _Tally(asking.requests)
    request = _request(asking, parts.netloc)
    start_s, cpu_s = time.perf_counter(), time.process_time()
    lines = []
    for _ in range(asking.clients):
        _, line = await loop.create_connection(
            lambda: _Line(request, asking.tokens, tally),
            parts.hostname or "127.0.0.1",
            parts.port or 80,
        )
        lines.append(line)
    longest_s = ANSWER_S + 0.05 * asking.requests
    _, late = await asyncio.wait([line.over for line in lines], timeout=longest_s)
    tally.errors += len(late)
    for line in lines:
        line.close()
    return Loaded(
        requests=len(tally.whole_s),
        seconds=time.perf_counter() - start_s,
        p50_ms=_quantile_ms(tally.whole_s, 0.5),
        p99_ms=_quantile_ms(tally.whole_s, 0.99),
        first_p50_ms=_quantile_ms(tally.first_s, 0.5),
        first_p99_ms=_quantile_ms(tally.first_s, 0.99),
        tokens=tally.tokens,
        errors=tally.errors,
        cpu_s=time.process_time() - cpu_s,
        trouble=tally.trouble or ("no answer in time" if late else ""),
    )


def _request(asking: Asking, host: str) -> bytes:
    body = msgspec.json.encode(
        {
            "model": asking.model,
            "messages": [{"role": "user", "content": "How long does an answer take?"}],
            "max_tokens": asking.tokens,
            "stream": asking.streamed,
        }
    )
    path = urlsplit(asking.url).path.rstrip("/") + "/v1/chat/completions"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer none\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _quantile_ms(seconds: list[float], share: float) -> float:
    if not seconds:
        return 0.0
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


def main() -> None:
    """One run: an ``Asking`` as JSON in, a ``Loaded`` as JSON out."""
    asking = msgspec.json.decode(sys.argv[1], type=Asking)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(load(asking))))


if __name__ == "__main__":
    main()
