"""Both stores behind one face, so that a test of the connection is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from cogrid.store.address import Address
from cogrid.store.async_client import AsyncStore
from cogrid.store.client import Store
from cogrid.store.keys import Keys
from cogrid.store.passes import stamp_homes
from cogrid.store.reading import Reading, certain
from cogrid.store.script import Call

T = TypeVar("T")


class Sync:
    """The sync store, awaited in a thread of its own."""

    def __init__(self, address: Address, reply_s: float = 5.0) -> None:
        self.store = Store.connect(address, reply_s=reply_s)
        self.shown = self.store.shown

    async def do(self, call: Call[T]) -> T:
        return await asyncio.to_thread(self.store.do, call)

    async def read(self, reading: Reading[T]) -> T:
        return await asyncio.to_thread(self.store.read, reading)

    def close(self) -> None:
        self.store.close()


Way = Sync | AsyncStore
WAYS: dict[str, Callable[..., Way]] = {
    "sync": Sync,
    "async": lambda address, reply_s=5.0: AsyncStore(address, reply_s=reply_s),
}


def stamp(*models: str) -> Call[int]:
    """A small transition."""
    return stamp_homes(Keys(), models or ("m",))


def count_models() -> Reading[int]:
    """A small reading."""
    (reply,) = yield [("ZCARD", Keys().models)]
    return int(certain(reply))


async def soon(ask: Callable[[], Awaitable[Any]], errors: tuple[type[Exception], ...]) -> Any:
    """Asks again until it is answered; fails after ten seconds."""
    deadline = asyncio.get_running_loop().time() + 10
    while True:
        try:
            return await ask()
        except errors:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.01)
