"""Everything of a worker that works together, wired in one place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from cogrid import __version__
from cogrid.config import Config
from cogrid.model.names import TaskId
from cogrid.store.address import Address
from cogrid.store.async_client import AsyncStore
from cogrid.store.client import Store
from cogrid.store.outage import Outage
from cogrid.store.workers import Renewed, Who
from cogrid.worker.claims import Claims
from cogrid.worker.deadlines import Speeds
from cogrid.worker.desk import Desk
from cogrid.worker.drill import Hang
from cogrid.worker.held import Held
from cogrid.worker.identity import Identity
from cogrid.worker.offers import Offers
from cogrid.worker.pulled import Pulled
from cogrid.worker.renewal import Renewal, StruckOff, Superseded, Told
from cogrid.worker.runs import Runs
from cogrid.worker.sanity import Sanity
from cogrid.worker.start import Place

log = logging.getLogger(__name__)

REPLY_PART = 0.4
"""Part of a renewal's interval that Redis has for a reply: one that is lost is asked for again
while there is time before the lease ends."""


class Crew:
    """One event loop (claims, runs, sanity) and one thread (renewals).

    alive: called whenever the claim loop turns, and while the name is waited for.
    """

    def __init__(
        self,
        config: Config,
        address: Address,
        who: Identity,
        place: Place,
        alive: Callable[[], None],
        pulled: Pulled,
    ) -> None:
        limits, prefix = config.limits, config.redis.prefix
        outage, hang = Outage("what runs here goes on"), Hang()
        self.superseded_by = ""
        self.over = asyncio.Event()
        """Another machine has the name, or an operator has struck this process off."""
        self.struck_off = False
        self.held = Held(limits, place.slots, place.supports)
        self.store = AsyncStore(address, prefix, reply_s=limits.renew_s)
        self.offers = Offers(limits, config.worker.models, self._offers_changed, pulled=pulled)
        self.speeds = Speeds()
        self.sanity = Sanity(place.engine, self.offers, self.speeds, limits)
        self.desk = Desk(
            self.store, who, place.pool, self.held, self.offers, limits, outage, hang
        )  # fmt: skip
        self.runs = Runs(
            who.id, place.engine, self.desk, self.held, self.offers, self.speeds, limits
        )
        self.claims = Claims(self.store, who.id, self.desk, self.held, limits, outage, hang)
        self.renewal = Renewal(
            lambda: Store.connect(address, prefix, REPLY_PART * limits.renew_s),
            _introduced(who, place),
            self.held,
            limits,
            self._telling(),
            outage,
        )
        self.desk.took = self.runs.took
        self.desk.astray = self.renewal.now
        self.desk.allowed_s = lambda: self.speeds.longest_first_s(limits)
        self.runs.look = self.sanity.once
        self.runs.freed = self.claims.slot_freed
        self.claims.news = self._news
        self.claims.turned = alive
        self._alive = alive
        self._limits = limits
        self._who = who
        self._named = asyncio.Event()
        self._renewals_end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drain_wanted = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Say hello, and go to work once the name is there."""
        self.renewal.start()
        loop = asyncio.get_running_loop()
        self._loops = [loop.create_task(work) for work in (self._work(), self.runs.watch())]

    async def broken(self) -> None:
        """Returns never; raises what ended a loop, or the renewals, that should not end."""
        await asyncio.gather(*self._loops, self._renewals_end)

    async def close(self) -> None:
        """Everything ends now, whatever it was about to say."""
        self.renewal.stop()
        loops = [*self._loops, *self._tasks]
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self.runs.abandon()
        self.store.close()
        await asyncio.to_thread(self.renewal.join, self._limits.renew_s)

    async def _work(self) -> None:
        while not self._named.is_set():
            self._alive()
            try:
                async with asyncio.timeout(self._limits.tick_s):
                    await self._named.wait()
            except TimeoutError:
                continue
        await asyncio.gather(self.sanity.run(), self.claims.run())

    # What a renewal was told, brought from its thread to the loop.

    def _telling(self) -> Callable[[Told, float], None]:
        loop = asyncio.get_running_loop()

        def tell(told: Told, asked_s: float) -> None:
            try:
                loop.call_soon_threadsafe(self._hear, told, asked_s)
            except RuntimeError:
                return  # the loop is closed: nobody is left who would want to know

        return tell

    def _hear(self, told: Told, asked_s: float) -> None:
        if isinstance(told, Renewed):
            self._hear_renewed(told, asked_s)
        elif isinstance(told, Superseded):
            self.superseded_by = told.host
            self.over.set()
        elif isinstance(told, StruckOff):
            self.struck_off = True
            self.over.set()
        elif not self._renewals_end.done():
            self._renewals_end.set_exception(told)

    def _hear_renewed(self, told: Renewed, asked_s: float) -> None:
        self._named.set()
        self.desk.renewed()
        self.claims.renewed()
        self.runs.lost(told.lost, asked_s)
        for task, token in told.unknown_runs:
            log.warning("[renew] task=%s does not run here: handed back", task)
            self._soon(self.desk.hand_back(task, token))
        if told.registered:
            models = [model for model, _ in self.offers.served()]
            supports = list(self.held.supports)
            log.info(
                "[register] worker_id=%s models=%s supports=%s", self._who.id, models, supports
            )
        self._obey(told)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _obey(self, told: Renewed) -> None:
        """What the operator wants."""
        wanted = told.wish.state == "drain"
        if wanted is self._drain_wanted:
            return
        self._drain_wanted = wanted
        log.info("[%s] wanted by %s", told.wish.state, told.wish.by or "somebody")
        self.held.draining = wanted
        self.renewal.now()
        self.claims.poke()

    def _offers_changed(self) -> None:
        """A model has another state: it is told at once, and waited for anew. The first that is
        fine makes the worker ready."""
        self.held.offer(self.offers.all())
        self.held.ready = self.held.ready or bool(self.offers.served())
        self.sanity.look_soon()
        self.renewal.now()
        self.claims.poke()

    def _news(self, task: TaskId) -> None:
        """Something happened to a task that runs here, or the operator wants something: the answer
        to a renewal says what."""
        if task == "wish" or self.runs.has(task):
            self.renewal.now()


def _introduced(who: Identity, place: Place) -> Who:
    return Who(
        worker=who.id,
        instance=who.instance,
        lock=who.lock,
        host=who.host,
        pool=place.pool,
        slots=place.slots,
        version=__version__,
        engine=place.version,
    )
