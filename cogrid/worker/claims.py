"""The claim loop: wait for a hint, claim, wait again; in every state, so that it shows life."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.worker import WorkerState
from cogrid.store.async_client import AsyncStore
from cogrid.store.outage import Outage, wait_s
from cogrid.store.refusal import StoreError
from cogrid.worker.desk import Desk
from cogrid.worker.drill import Hang
from cogrid.worker.held import Held

log = logging.getLogger(__name__)

LINGER_S = 0.05
"""A full worker waits so long for a slot of its own before it blocks in Redis: a short run then
costs no second wake-up. After a claim that took one task it waits so long for a hint before it
claims again: what is left in a shared queue has armed the marker, and in most cases nothing is."""

HINTS = 100
"""Of an inbox, taken at once."""

LISTEN_TICKS = 0.5
"""A loop that finds work at every turn, and so never blocks, still reads its inbox so often, in
ticks (seconds, by default): a run that was cancelled is in there."""

NUDGE = "slot"
"""The member that a worker puts into its own inbox to wake itself."""


class Claims:
    """Blocks on its own inbox always, on the shared queues' markers only while it can take
    something: a marker that a full worker takes is one that a free worker misses.

    turned: called each time the loop turns. news: called with the id of a task that something has
    happened to, or ``wish``. nudge: how it wakes itself.
    """

    def __init__(
        self,
        store: AsyncStore,
        name: str,
        desk: Desk,
        held: Held,
        limits: Limits,
        outage: Outage,
        hang: Hang,
    ) -> None:
        self.turned: Callable[[], None] = lambda: None
        self.news: Callable[[TaskId], None] = lambda _: None
        self._store = store
        self._name = name
        self._desk = desk
        self._held = held
        self._limits = limits
        self._outage = outage
        self._hang = hang
        self._inbox = store.keys.inbox(name)
        self._has_news = False
        self._heard_s = 0.0
        self._heard = True
        self._renewals = 0
        self._blocked = False
        self._shut = False
        self._refused = False
        self._said: tuple[str, ...] = ()
        self._changed = asyncio.Event()
        self._nudges: set[asyncio.Task[None]] = set()
        self._failures = 0

    async def run(self) -> None:
        """For as long as the worker lives."""
        while True:
            try:
                await self._turn()
                self._failures = 0
            except StoreError as error:
                self._failures += 1
                self._outage.lost("claims", error)
                self._beat()
                await asyncio.sleep(wait_s(self._failures, self._limits.tick_s))

    def slot_freed(self) -> None:
        """A run is over. Of interest only where the loop waits without looking at markers."""
        self._changed.set()
        if self._shut:
            self.poke()

    def renewed(self) -> None:
        """Redis knows this worker again; a claim that it refused may be asked anew."""
        self._renewals += 1
        if self._refused:
            self.poke()

    def poke(self) -> None:
        """What it waits for has changed (state, models): wait anew."""
        self._changed.set()
        if self._blocked:
            self._blocked = self._shut = False
            nudge = asyncio.create_task(self._nudge())
            self._nudges.add(nudge)
            nudge.add_done_callback(self._nudges.discard)

    async def _turn(self) -> None:
        while self._hang.on():  # noqa: ASYNC110 (a file sets no event)
            await asyncio.sleep(LINGER_S)
        renewals = self._renewals
        reply = await self._desk.claim()
        if reply is not None:
            self._outage.back("claims")
        self._beat()
        self._refused = reply is not None and reply.status != "ok"
        if self._has_news or self._deaf:
            await self._read_inbox()
        taken = len(reply.tasks) if reply is not None and self._free else 0
        if taken > 1 or (self._refused and renewals != self._renewals):
            return
        await self._wait(LINGER_S if taken else self._limits.block_s)

    def _beat(self) -> None:
        self._held.turned_s = time.monotonic()
        self.turned()

    @property
    def _deaf(self) -> bool:
        """True when it has not looked into its inbox for too long."""
        return time.monotonic() - self._heard_s > LISTEN_TICKS * self._limits.tick_s

    @property
    def _free(self) -> bool:
        return self._held.state is WorkerState.READY and self._held.free > 0

    async def _wait(self, limit_s: float) -> None:
        if not self._free and self._held.free == 0 and await self._slot_within(LINGER_S):
            return
        free = self._free
        queues = tuple(name for name, _ in self._desk.queues())
        if free:
            self._say(queues)
        # A claim that Redis refused waits for the renewal, and pops no marker meanwhile.
        markers = queues[1:] if free and not self._refused else ()
        hints = (self._inbox, *(self._store.keys.wake(queue) for queue in markers))
        self._blocked, self._shut = True, not markers
        # After a wait that failed a short one tells whether the next would do so too.
        limit_s = limit_s if self._heard else LINGER_S
        try:
            woken = await self._store.wait(hints, min(limit_s, self._limits.renew_s))
        except StoreError as error:
            # Apart from the claims: they have another connection, which may be fine.
            self._outage.lost("hints", error)
            self._heard = False
            raise
        finally:
            self._blocked = self._shut = False
        self._outage.back("hints")
        self._heard = True
        self._heard_s = time.monotonic()
        if woken is not None and woken[0] == self._inbox:
            self._has_news = True
            self._hear(woken[1])

    async def _slot_within(self, limit_s: float) -> bool:
        self._changed.clear()
        try:
            async with asyncio.timeout(limit_s):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _read_inbox(self) -> None:
        hints = await self._store.take_hints(self._inbox, HINTS)
        self._has_news = len(hints) == HINTS
        self._heard_s = time.monotonic()
        for hint in hints:
            self._hear(hint)

    def _hear(self, hint: str) -> None:
        if hint != NUDGE:
            self.news(TaskId(hint))

    async def _nudge(self) -> None:
        try:
            await self._store.nudge(self._name, NUDGE)
        except StoreError as error:
            # The wait ends by itself in a few seconds, or has failed too.
            self._outage.lost("claims", error)

    def _say(self, queues: tuple[str, ...]) -> None:
        if queues != self._said:
            self._said = queues
            log.info("waiting on queues [%s]", ", ".join(queues))
