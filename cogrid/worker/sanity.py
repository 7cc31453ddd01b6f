"""Sanity: every model is asked for one token before it is offered, and again after a quarantine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from cogrid.engine.api import Engine, EngineError, Fault, Listed
from cogrid.model.limits import Limits
from cogrid.worker.deadlines import Speeds
from cogrid.worker.offers import Offers

log = logging.getLogger(__name__)

LOOK_TICKS = 30
"""Between two listings, in ticks (seconds, by default): so soon a pulled model is noticed."""

RETRY_TICKS = 2
"""The same while the engine does not answer."""


class Sanity:
    """Looks what the engine has, and probes what is due. One probe at a time: a machine that loads
    two models at once may have memory for neither."""

    def __init__(
        self,
        engine: Engine,
        offers: Offers,
        speeds: Speeds,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._offers = offers
        self._speeds = speeds
        self._limits = limits
        self._clock = clock
        self._away = False
        self._empty = False
        self._soon = asyncio.Event()
        self._busy = asyncio.Lock()

    async def run(self) -> None:
        """For as long as the worker lives."""
        while True:
            await self.once()
            self._soon.clear()
            try:
                async with asyncio.timeout(self._pause_s()):
                    await self._soon.wait()
            except TimeoutError:
                continue

    async def once(self) -> None:
        """One listing, and the probes that are due; another one that is under way comes first."""
        async with self._busy:
            await self._look()
            for model in self._offers.due():
                await self._probe(model)

    def look_soon(self) -> None:
        """Something is not as the last listing said."""
        self._soon.set()

    async def _look(self) -> None:
        try:
            found = await self._engine.listed()
        except EngineError as error:
            if not self._away:
                log.warning("[engine] lost: %s", error.message)
            self._away = True
            self._offers.engine_away(error)
            return
        if self._away:
            log.warning("[engine] back: %s", self._engine.url)
        self._away = False
        if not found and not self._empty:
            log.warning("[sanity] %s has no model yet: pull one", self._engine.url)
        self._empty = not found
        self._offers.listed(found)

    async def _probe(self, model: Listed) -> None:
        limit_s = self._speeds.first_s(model.name, model.loaded, 1, self._limits)
        error: EngineError | None = None
        try:
            async with asyncio.timeout(limit_s):
                await self._engine.probe(model)
        except EngineError as refused:
            error = refused
        except TimeoutError:
            error = EngineError(Fault.SILENT, f"no token within {limit_s:.0f} s")
        if error is None:
            log.info("[sanity] checking %s ... OK", model.name)
        else:
            log.warning("[sanity] checking %s ... FAILED: %s", model.name, error.message)
        self._offers.probed(model.name, error)

    def _pause_s(self) -> float:
        if self._away:
            return RETRY_TICKS * self._limits.tick_s
        pause_s = LOOK_TICKS * self._limits.tick_s
        due_s = self._offers.next_due_s()
        return pause_s if due_s is None else min(pause_s, max(0.0, due_s - self._clock()))
