"""What this coordinator believes of the grid: a snapshot, read again every tick.

Model lists, routing and admission look into it, so they answer in milliseconds whatever the fleet
does. Another coordinator would read the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from cogrid.coordinator.errors import RefusedError, store_refusal
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.rules.grid import Grid
from cogrid.rules.seen import as_wished
from cogrid.store.async_client import AsyncStore
from cogrid.store.fitness import UnfitError, read_fitness, require
from cogrid.store.outage import Outage
from cogrid.store.passes import AHEAD, SCHEMA
from cogrid.store.refusal import StoreError
from cogrid.store.roles import Role
from cogrid.store.snapshot import read_snapshot

log = logging.getLogger(__name__)

FRESH_SHARE = 0.1
"""Before a request is turned away for want of a home, a snapshot older than this share of a tick is
read again: the worker may have come in the meantime."""
INFO_EVERY = 15
"""Reads of the grid for one of the server's own facts, which hardly change and cost more."""


class Registry:
    """placed: what went to workers' own queues since the snapshot was taken. changed: called with
    the snapshots before and after each read."""

    def __init__(self, store: AsyncStore, limits: Limits, outage: Outage) -> None:
        self.limits = limits
        self.placed: Counter[str] = Counter()
        self.changed: Callable[[Snapshot, Snapshot], None] | None = None
        self._store = store
        self._outage = outage
        self._grid: Grid | None = None
        self._error: StoreError | None = None
        self._reads = 0
        self._read_at = 0.0
        self._since = time.monotonic()
        self._reading: asyncio.Task[None] | None = None

    @property
    def grid(self) -> Grid:
        """The grid as it was read last; RefusedError where it never could be."""
        if self._grid is None:
            raise self._blind()
        schema = self._grid.snapshot.reaper.schema
        if schema > SCHEMA + AHEAD:
            message = f"Redis holds the data of a newer cogrid (schema {schema}, here {SCHEMA})"
            raise RefusedError("store_unreachable", message, "install the newer version here too")
        return self._grid

    @property
    def snapshot(self) -> Snapshot | None:
        """What was read last, None where nothing could be."""
        return self._grid.snapshot if self._grid else None

    @property
    def age_s(self) -> float:
        """Seconds since workers could begin to be seen here."""
        return time.monotonic() - self._since

    async def refresh(self) -> None:
        """Read the grid now; who asks while it is being read shares that. StoreError."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def freshen(self) -> bool:
        """Read the grid again unless that was done just now; False where nothing was read."""
        if time.monotonic() - self._read_at < FRESH_SHARE * self.limits.tick_s:
            return False
        try:
            await self.refresh()
        except StoreError:
            return False
        return True

    async def close(self) -> None:
        """End a read that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def run(self) -> None:
        """Until cancelled: a read every tick."""
        while True:
            with contextlib.suppress(StoreError):  # it is kept, and whoever needs Redis says so
                await self.refresh()
            await asyncio.sleep(self.limits.tick_s)

    async def _read(self) -> None:
        info = self._grid is None or self._reads % INFO_EVERY == 0
        self._reads += 1
        try:
            await self._check()
            snapshot = await self._store.read(read_snapshot(self._store.keys, info=info))
        except StoreError as error:
            self._outage.lost("grid", error)
            self._error = error
            self._reads = 0
            raise
        self._outage.back("grid")
        before = self._grid.snapshot if self._grid else Snapshot(0)
        if not info:
            snapshot = replace(snapshot, server=before.server)
        if before.workers and not snapshot.workers:
            # Emptied, or another server: who was here will be back within a lease.
            self._since = time.monotonic()
        self._error = None
        self._grid = Grid.of(as_wished(snapshot), self.limits)
        self._read_at = time.monotonic()
        self.placed.clear()
        if self.changed:
            self.changed(before, snapshot)

    async def _check(self) -> None:
        """Once, as soon as Redis is there: can it be used at all?"""
        if self._grid is not None:
            return
        try:
            reading = read_fitness(self._store.keys, role=Role.COORDINATOR)
            require(await self._store.read(reading), log.warning)
        except UnfitError as error:
            raise StoreError(error.message, error.hint, code="UNFIT", passing=False) from error

    def _blind(self) -> RefusedError:
        if self._error:
            return store_refusal(self._error)
        return RefusedError("grid_starting", "the coordinator is just starting", retry_after_s=1)
