"""Clients that have left: their names are taken off their tasks, however long Redis is away."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

from cogrid.coordinator.follower import Follower
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.store.async_client import AsyncStore
from cogrid.store.clients import detach
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call
from cogrid.store.tasks import withdraw

log = logging.getLogger(__name__)

RETRY_MOST_S = 2.0
WITHDRAW_S = 1000.0
"""No lease stands behind a kept task, so its withdrawal is told for longer than a submission may be
under way: a connection's last bytes are repeated for 924 s (Linux, tcp_retries2)."""


class Departures:
    """What is still to be told to Redis. Behind a departure stands the lease in ``grid:clients``,
    so what is given up here ends by itself."""

    def __init__(self, store: AsyncStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._telling: set[asyncio.Task[None]] = set()

    def leave(self, follower: Follower) -> None:
        """This connection listens no more."""
        call = detach(self._store.keys, follower.task, follower.name)
        self._begin(call, follower.task, self._limits.orphan_grace_s)

    def withdraw(self, task: TaskId, ticket: str) -> None:
        """The client was told that this submission was not accepted."""
        message = "its submission was never acknowledged"
        self._begin(withdraw(self._store.keys, task, ticket, message), task, WITHDRAW_S)

    async def told(self, limit_s: float) -> None:
        """Wait until everything has been told, or for so long."""
        if self._telling:
            await asyncio.wait(tuple(self._telling), timeout=limit_s)
        late = tuple(self._telling)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _begin(self, call: Call[Any], task: TaskId, limit_s: float) -> None:
        telling = asyncio.create_task(self._tell(call, task, limit_s))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell(self, call: Call[Any], task: TaskId, limit_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        wait_s = 0.05
        while True:
            try:
                await self._store.do(call)
                return
            except StoreError as error:
                if not error.passing:
                    log.warning("task %s could not be let go: %s", task, error.message)
                    return
                if loop.time() > deadline:
                    return
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, RETRY_MOST_S)
