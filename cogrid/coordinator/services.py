"""What every request of one coordinator shares."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from cogrid.config import Config
from cogrid.coordinator.access import Access
from cogrid.coordinator.affinity import Affinity
from cogrid.coordinator.departures import Departures
from cogrid.coordinator.live import Live
from cogrid.coordinator.metrics import Metrics
from cogrid.coordinator.registry import Registry
from cogrid.coordinator.watch_events import Watch
from cogrid.store.address import Address
from cogrid.store.async_client import AsyncStore
from cogrid.store.outage import Outage

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """store: for what a client waits for. side: a second connection, so that a snapshot of a large
    grid never stands before that."""

    config: Config
    store: AsyncStore
    side: AsyncStore
    live: Live
    registry: Registry
    access: Access
    affinity: Affinity
    metrics: Metrics
    departures: Departures
    watch: Watch
    outage: Outage

    @classmethod
    def of(cls, config: Config, address: Address) -> Services:
        """The parts of a new coordinator; nothing is connected yet."""
        limits = config.limits
        store = AsyncStore(address, config.redis.prefix)
        side = AsyncStore(address, config.redis.prefix)
        outage = Outage("open answers wait for it")
        registry = Registry(side, limits, outage)
        live = Live(store, limits, _name(), outage)
        return cls(
            config=config,
            store=store,
            side=side,
            live=live,
            registry=registry,
            access=Access(side, config.coordinator),
            affinity=Affinity(),
            metrics=Metrics(limits, lambda: registry.snapshot, lambda: len(live)),
            departures=Departures(store, limits),
            watch=Watch(side, registry, limits, outage),
            outage=outage,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The loops that run beside the requests."""
        loops = (
            self.registry.run,
            self.access.run,
            self.live.read,
            self.live.renew,
            self.watch.run,
        )
        pause_s = self.config.limits.tick_s
        tasks = [asyncio.create_task(_kept_up(loop, pause_s)) for loop in loops]
        try:
            yield
        finally:
            await self.departures.told(self.config.limits.submit_timeout_s)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.registry.close()
            self.store.close()
            self.side.close()
            await asyncio.sleep(0)  # the transports close in the loop's next turn


async def _kept_up(loop: Callable[[], Awaitable[None]], pause_s: float) -> None:
    """Begins a loop again that a fault of ours has ended; without it the coordinator would go on
    and answer from what it knew last, or not at all. Each fault is told once."""
    told = ""
    while True:
        try:
            await loop()
        except Exception as error:
            if repr(error) != told:
                told = repr(error)
                log.exception("a loop of the coordinator failed; it begins again")
        await asyncio.sleep(pause_s)


def _name() -> str:
    """A coordinator's name in Redis: its host, and what tells two apart. Without space or colon,
    which part names there."""
    host = socket.gethostname().partition(".")[0].lower()
    kept = "".join(c for c in host if c.isalnum() or c in "-_") or "coordinator"
    return f"{kept}-{secrets.token_hex(4)}"
