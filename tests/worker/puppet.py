"""An engine without server that does what a test says, a step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from cogrid.engine.api import Done, EngineError, Listed
from cogrid.model.chat import Delta, Request, Usage
from tests.wait import until_async

USAGE = Usage(prompt_tokens=3, completion_tokens=2, total_s=0.5)


class Stream:
    """One request on its way. The test says what comes; ``closed`` once nobody listens any more."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.closed = asyncio.Event()
        self._items: asyncio.Queue[Delta | Done | Exception] = asyncio.Queue()

    def say(self, *texts: str) -> None:
        for text in texts:
            self._items.put_nowait(Delta(content=text))

    def give(self, item: Delta | Done | Exception) -> None:
        self._items.put_nowait(item)

    def done(self, reason: str = "stop") -> None:
        self._items.put_nowait(Done(reason, USAGE))

    async def items(self) -> AsyncGenerator[Delta | Done, None]:
        try:
            while True:
                item = await self._items.get()
                if isinstance(item, Exception):
                    raise item
                yield item
                if isinstance(item, Done):
                    return
        finally:
            self.closed.set()


class Puppet:
    """An ``Engine``. models and refusals may be changed while it runs; streams are all requests."""

    kind = "puppet"
    url = "puppet:"

    def __init__(self, *models: str | Listed, parallel: int = 1) -> None:
        given = models or ("gemma3:1b",)
        self.models = [m if isinstance(m, Listed) else Listed(m, loaded=True) for m in given]
        self.streams: list[Stream] = []
        self.probes: list[str] = []
        self.refusals: dict[str, EngineError] = {}
        self.away: EngineError | None = None
        self._parallel = parallel

    async def asked(self, count: int) -> Stream:
        """The ``count``-th request, once it is there."""
        await until_async(lambda: len(self.streams) >= count, what=f"request {count}")
        return self.streams[count - 1]

    async def version(self) -> str:
        return "1.0"

    async def listed(self) -> tuple[Listed, ...]:
        if self.away:
            raise self.away
        return tuple(self.models)

    async def parallel(self) -> int:
        return self._parallel

    async def gpu(self) -> bool:
        return False

    async def probe(self, model: Listed) -> None:
        self.probes.append(model.name)
        if error := self.away or self.refusals.get(model.name):
            raise error

    def stream(self, request: Request) -> AsyncGenerator[Delta | Done, None]:
        self.streams.append(Stream(request))
        return self.streams[-1].items()

    async def aclose(self) -> None:
        return None
