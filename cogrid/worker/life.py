"""A worker's life: name, engine, hello, probes, work, and a good end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from cogrid import __version__
from cogrid.config import Config
from cogrid.engine.api import Engine
from cogrid.errors import Exit
from cogrid.model.names import WorkerId
from cogrid.notify import Notify
from cogrid.store.address import Address
from cogrid.worker.crew import Crew
from cogrid.worker.identity import NameLock, default_id, identity
from cogrid.worker.pulled import Pulled
from cogrid.worker.run import Stop
from cogrid.worker.start import Place, find_place

log = logging.getLogger(__name__)
T = TypeVar("T")

SUPERSEDED = 75
"""The exit status of a worker whose name another machine has (EX_TEMPFAIL). Its unit does not start
it again (RestartPreventExitStatus=75): two machines would take the name from each other."""

LAST_WORDS_TICKS = 3
"""At the end: how long it may take to tell what is handed back, in ticks (seconds, by default)."""


class Life:
    """One worker, from its start to its exit status, on the running event loop.

    directory: where the lock file of its name is. engine: given where it is known (tests, the
    demonstration); else the configured or the usual places are asked.
    """

    def __init__(
        self, config: Config, address: Address, directory: Path, engine: Engine | None = None
    ) -> None:
        self.id = WorkerId(config.worker.id) or default_id(socket.gethostname())
        self._config = config
        self._address = address
        self._directory = directory
        self._engine = engine
        self._notify = Notify()
        self.crew: Crew | None = None
        self._leaving = asyncio.Event()
        self._hurry = asyncio.Event()

    def leave(self) -> None:
        """Finish what runs and go. Said twice: hand back what runs and go."""
        if self._leaving.is_set():
            self._hurry.set()
        self._leaving.set()

    def heed_signals(self) -> None:
        """SIGTERM and SIGINT mean ``leave``."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)

    async def run(self) -> int:
        """Live; the exit status."""
        log.info("[start] worker_id=%s version=%s", self.id, __version__)
        with NameLock.take(self._directory, self.id) as lock, contextlib.closing(self._notify):
            self._notify.ready()
            looking = find_place(self._config, self._engine, self._notify.alive)
            place = await self._unless_leaving(looking)
            if place is None:
                return Exit.OK
            try:
                return await self._work(lock, place)
            finally:
                await place.engine.aclose()

    async def _work(self, lock: NameLock, place: Place) -> int:
        who = identity(self.id, lock)
        pulled = Pulled(self._directory / f"worker-{self.id}.models")
        crew = self.crew = Crew(self._config, self._address, who, place, self._notify.alive, pulled)
        crew.start()
        try:
            over = asyncio.create_task(crew.over.wait())
            await self._unless_leaving(_first(over, crew.broken()))
            self._notify.stopping(self._last_s())
            if crew.over.is_set():
                return await self._give_up(crew)
            return await self._go_away(crew)
        finally:
            over.cancel()
            await crew.close()

    async def _give_up(self, crew: Crew) -> int:
        """The name is no longer this process's. Struck off, it may be started again: the next one
        is another process."""
        if crew.struck_off:
            log.error("[forgotten] worker_id=%s: an operator has struck this process off", self.id)
        else:
            log.error(
                "[superseded] worker_id=%s is now at host %s: what runs here is stopped",
                self.id,
                crew.superseded_by,
            )
        crew.runs.stop_all(Stop.LOST)
        await crew.runs.drained(LAST_WORDS_TICKS * self._config.limits.tick_s)
        return Exit.FAILED if crew.struck_off else SUPERSEDED

    async def _go_away(self, crew: Crew) -> int:
        """Take nothing more, finish what runs, hand back the rest. The last renewal leaves the
        lease to run out, so that a restart within it loses no queue."""
        limits = self._config.limits
        crew.held.away = True
        crew.renewal.now()
        crew.claims.poke()
        models = crew.runs.models
        log.info("[stop] worker_id=%s away; %d running", self.id, len(models))
        hurry = asyncio.create_task(self._hurry.wait())
        await _first(hurry, crew.runs.drained(limits.drain_timeout_s))
        hurry.cancel()
        if crew.runs.models:
            log.warning("[stop] handing back what still runs: %s", ", ".join(crew.runs.models))
            crew.runs.stop_all(Stop.BACK)
            await crew.runs.drained(LAST_WORDS_TICKS * limits.tick_s)
        crew.renewal.leave()
        await asyncio.to_thread(crew.renewal.join, LAST_WORDS_TICKS * limits.tick_s)
        log.info("[stop] worker_id=%s ended", self.id)
        return Exit.OK

    def _last_s(self) -> float:
        """The most that a good end takes: the drain, what is handed back, the last renewal."""
        limits = self._config.limits
        return limits.drain_timeout_s + 2 * LAST_WORDS_TICKS * limits.tick_s + 2 * limits.renew_s

    async def _unless_leaving(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Its result, or None where it was told to leave before there was one."""
        leaving = asyncio.create_task(self._leaving.wait())
        doing = asyncio.create_task(work)
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if doing.done():
            return doing.result()
        doing.cancel()
        await asyncio.wait((doing,))
        return None


async def _first(one: asyncio.Task[Any], other: Coroutine[Any, Any, Any]) -> None:
    """Until one of them is done; the exception of either is raised."""
    second = asyncio.create_task(other)
    try:
        done, _ = await asyncio.wait((one, second), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        second.cancel()
        await asyncio.wait((second,))


async def live(
    config: Config, address: Address, directory: Path, engine: Engine | None = None
) -> int:
    """A worker as a process of its own: it ends at SIGTERM or SIGINT."""
    life = Life(config, address, directory, engine)
    life.heed_signals()
    return await life.run()
