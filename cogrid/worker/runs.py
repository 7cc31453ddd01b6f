"""All runs of one worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from cogrid.engine.api import Engine
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.store.tasks import Handed
from cogrid.worker.chore import Chore
from cogrid.worker.deadlines import Speeds
from cogrid.worker.desk import Desk
from cogrid.worker.held import Held, Pulse
from cogrid.worker.offers import Offers
from cogrid.worker.run import Run, Stop

CHECK_TICKS = 0.25
"""Deadlines are looked at so often, in ticks; a timer for each token would cost more."""


class Runs:
    """Starts what was claimed, stops what was lost, and watches the deadlines of all.

    freed: called when a run has let go of its slot. look: lists what the engine has, and probes
    what is due.
    """

    def __init__(
        self,
        worker: str,
        engine: Engine,
        desk: Desk,
        held: Held,
        offers: Offers,
        speeds: Speeds,
        limits: Limits,
    ) -> None:
        self.worker = worker
        self.engine = engine
        self.desk = desk
        self.offers = offers
        self.speeds = speeds
        self.limits = limits
        self.freed: Callable[[], None] = lambda: None
        self.look: Callable[[], Awaitable[None]] = _nothing
        self._held = held
        self._runs: dict[TaskId, set[Run]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def took(self, number: int, handed: tuple[Handed, ...], over: Pulse | None) -> None:
        """The answer to a claim: its runs are held before anything else happens, then begin."""
        runs = [Chore(task, self) if task.kind.chore else Run(task, self) for task in handed]
        self._held.settle(number, [run.pulse for run in runs], over)
        for run in runs:
            self._idle.clear()
            self._runs.setdefault(run.handed.id, set()).add(run)
            task = run.start()
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def ended(self, run: Run) -> None:
        """A run has told its end, or was dropped."""
        same = self._runs.get(run.handed.id, set())
        same.discard(run)
        if not same:
            self._runs.pop(run.handed.id, None)
        self._held.end(run.pulse)
        if not self._runs:
            self._idle.set()
        self.freed()

    def has(self, task: TaskId) -> bool:
        """Whether a run of this task is here."""
        return task in self._runs

    @property
    def models(self) -> tuple[str, ...]:
        """Of what runs now."""
        return tuple(run.handed.model for run in self._all())

    def lost(self, tasks: Iterable[TaskId], asked_s: float) -> None:
        """These are no longer this worker's, says a renewal that was put together at asked_s
        (monotonic). A run that is younger was not meant; of two runs of one task, the older was."""
        for task in tasks:
            told = [run for run in self._runs.get(task, ()) if run.started_s <= asked_s]
            told.sort(key=lambda run: run.started_s)
            for run in told[:-1] or told:
                run.stop(Stop.LOST)

    def stop_all(self, why: Stop) -> None:
        """End everything."""
        for run in self._all():
            run.stop(why)

    async def drained(self, limit_s: float) -> bool:
        """Wait until nothing runs; False where that took too long."""
        try:
            async with asyncio.timeout(limit_s):
                return await self._idle.wait()
        except TimeoutError:
            return False

    async def watch(self) -> None:
        """Looks at deadlines for as long as the worker lives."""
        while True:
            await asyncio.sleep(CHECK_TICKS * self.limits.tick_s)
            now_s = time.monotonic()
            for run in self._all():
                run.check(now_s)

    async def abandon(self) -> None:
        """Drops what is left without a word."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _all(self) -> list[Run]:
        return [run for runs in self._runs.values() for run in runs]


async def _nothing() -> None:
    """A worker without sanity looks at nothing."""
