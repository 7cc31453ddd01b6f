"""Clients that have left: their names are taken off their tasks, however long Redis is away."""

from __future__ import annotations

import asyncio
import logging
import random

from cogrid.coordinator.follower import Follower
from cogrid.model.limits import Limits
from cogrid.store.async_client import AsyncStore
from cogrid.store.clients import detach
from cogrid.store.refusal import StoreError
from cogrid.store.tasks import cancel

log = logging.getLogger(__name__)

RETRY_MOST_S = 2.0


class Departures:
    """What is still to be told to Redis. Behind it stands the lease in ``grid:clients``, so what is
    given up here ends by itself."""

    def __init__(self, store: AsyncStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._telling: set[asyncio.Task[None]] = set()

    def leave(self, follower: Follower, never_accepted_keep: bool = False) -> None:
        """This connection listens no more. never_accepted_keep: the client was told that its task
        was not accepted, and nothing else would ever end it."""
        task = asyncio.create_task(self._tell(follower, never_accepted_keep))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def told(self, limit_s: float) -> None:
        """Wait until everything has been told, or for so long."""
        if self._telling:
            await asyncio.wait(tuple(self._telling), timeout=limit_s)
        late = tuple(self._telling)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _tell(self, follower: Follower, cancelling: bool) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.orphan_grace_s
        wait_s = 0.05
        while True:
            try:
                if cancelling:
                    message = "its submission was never acknowledged"
                    await self._store.do(cancel(self._store.keys, follower.task, message))
                else:
                    await self._store.do(detach(self._store.keys, follower.task, follower.name))
                return
            except StoreError as error:
                if not error.passing:
                    log.warning("task %s could not be let go: %s", follower.task, error.message)
                    return
                if loop.time() > deadline:
                    return
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, RETRY_MOST_S)
