"""The demonstration: an engine without server or model, to try the grid with and to measure it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from hashlib import blake2b
from typing import Any

from cogrid import __version__
from cogrid.engine.api import Done, EngineError, Fault, Listed
from cogrid.engine.to_ollama import to_ollama
from cogrid.model.chat import Delta, Request, Usage
from cogrid.model.names import DEMO_MODEL
from cogrid.model.task import Kind

MODEL = DEMO_MODEL
DELAY_ENV = "COGRID_DEMO_DELAY_MS"
DELAY_S = 0.03
"""Between words: the pace of a small model on an ordinary machine."""

PARALLEL = 4
DIMENSIONS = 8

_OPENING = "This is a demonstration, no model is running. You said:"


class DemoEngine:
    """An ``Engine`` that echoes the last message word by word and says what it is.

    delay_s: between words. 0: the whole answer in one piece and nothing waited for, which makes an
    engine that costs nothing; COGRID_DEMO_DELAY_MS sets it where it is not given.
    """

    kind = "demo"
    url = "demo:"

    def __init__(self, delay_s: float | None = None, parallel: int = PARALLEL) -> None:
        self._delay_s = _delay_s() if delay_s is None else delay_s
        self._parallel = parallel

    async def version(self) -> str:
        return __version__

    async def listed(self) -> tuple[Listed, ...]:
        return (Listed(MODEL, supports=("chat", "embed"), loaded=True),)

    async def parallel(self) -> int:
        return self._parallel

    async def gpu(self) -> bool:
        return False

    async def probe(self, model: Listed) -> None:
        _known(model.name)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Done, None]:
        _known(request.model)
        began_s = time.monotonic()
        if request.kind is Kind.EMBED:
            delta, done = embed(request.payload.get("input"))
            yield delta
            yield done
            return
        words, done = answer(request)
        if not self._delay_s:
            yield Delta(content="".join(words))
        else:
            for word in words:
                await asyncio.sleep(self._delay_s)
                yield Delta(content=word)
        yield done.timed(time.monotonic() - began_s)

    async def aclose(self) -> None:
        return None


def answer(request: Request) -> tuple[list[str], Done]:
    """The words that a request is answered with, and the end that follows them.

    Both dialects are understood through Ollama's; tokens are words, and a limit on them counts.
    """
    body = to_ollama(request).body
    messages = body.get("messages") or [{"content": body.get("prompt", "")}]
    said = str(messages[-1].get("content") or "")
    words = [*_OPENING.split(), *said.split()]
    limit = _limit(body.get("options"))
    pieces = [word if n == 0 else f" {word}" for n, word in enumerate(words)][:limit]
    prompt = sum(len(str(message.get("content") or "").split()) for message in messages)
    reason = "stop" if len(pieces) == len(words) else "length"
    return pieces, Done(reason, Usage(prompt, len(pieces)))


def embed(given: Any) -> tuple[Delta, Done]:
    """A vector for each input, the same for the same text and of length 1."""
    texts = [str(text) for text in (given if isinstance(given, list) else [given])]
    vectors = tuple(_vector(text) for text in texts)
    words = sum(len(text.split()) for text in texts)
    return Delta(embeddings=vectors), Done("stop", Usage(prompt_tokens=words))


def _vector(text: str) -> tuple[float, ...]:
    raw = [byte - 127.5 for byte in blake2b(text.encode(), digest_size=DIMENSIONS).digest()]
    length = sum(x * x for x in raw) ** 0.5
    return tuple(x / length for x in raw)


def _limit(options: Any) -> int | None:
    wanted = options.get("num_predict") if isinstance(options, dict) else None
    return wanted if isinstance(wanted, int) and wanted > 0 else None


def _known(model: str) -> None:
    if model != MODEL:
        message = f"the demonstration has no model {model!r}, only {MODEL}"
        raise EngineError(Fault.MISSING, message, f"ask for {MODEL}", 404)


def _delay_s() -> float:
    text = os.environ.get(DELAY_ENV, "")
    try:
        return float(text) / 1000 if text else DELAY_S
    except ValueError:
        return DELAY_S
