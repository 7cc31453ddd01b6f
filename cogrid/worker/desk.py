"""What the event loop tells Redis: claims, text, ends; each repeated until it is answered, or for
as long as a refusal that needs somebody's help is waited for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token, own_queue, shared_queue
from cogrid.model.worker import WorkerState
from cogrid.store.async_client import AsyncStore
from cogrid.store.outage import Outage, wait_s
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call
from cogrid.store.tasks import (
    Appended,
    Claim,
    Claimed,
    Finished,
    Handed,
    Outcome,
    append,
    claim,
    finish,
)
from cogrid.worker.drill import Hang
from cogrid.worker.held import Held, Pulse
from cogrid.worker.identity import Identity
from cogrid.worker.offers import Offers

log = logging.getLogger(__name__)
T = TypeVar("T")

_UNTIL_LET_IN = ("NOAUTH", "WRONGPASS")
"""Refusals of the connection and not of one call: an outage like any other."""

SLOW_TURNS = 3.0
"""A claim loop that has not turned for so many of its own waits is taken for hung; then no finish
claims along either, so that what waits is seen to wait, and moved."""


class Desk:
    """Keeps one rule: one claim is in flight at a time, the one inside a finish included, and its
    number is used again until it was answered.

    took: called with what a claim brought, after ``held`` knows it. astray: called when Redis does
    not know this process as it should, so that it renews or says hello.
    """

    def __init__(
        self,
        store: AsyncStore,
        who: Identity,
        pool: str,
        held: Held,
        offers: Offers,
        limits: Limits,
        outage: Outage,
        hang: Hang,
    ) -> None:
        self.took: Callable[[int, tuple[Handed, ...], Pulse | None], None] = lambda *_: None
        self.astray: Callable[[], None] = lambda: None
        self.allowed_s: Callable[[], float] = lambda: limits.load_s + limits.prompt_s
        self._store = store
        self._who = who
        self._pool = pool
        self._held = held
        self._offers = offers
        self._limits = limits
        self._outage = outage
        self._hang = hang
        self._refusal = ""
        self._asking = False
        self._unanswered: int | None = None
        self._answered = asyncio.Event()
        self._renewed = asyncio.Event()

    def queues(self) -> tuple[tuple[str, bool], ...]:
        """What is claimed from: its own queue, and the shared one of each model that it serves.
        (queue, model loaded); its own counts as loaded, so that it never comes last."""
        own = own_queue(self._pool, self._who.id)
        shared = ((shared_queue(self._pool, m), loaded) for m, loaded in self._offers.served())
        return ((own, True), *shared)

    async def claim(self) -> Claimed | None:
        """One try. None where a finish has just claimed along; StoreError: not answered, the next
        try repeats it."""
        if self._asking:
            await _event(self._answered, self._limits.block_s)
            return None
        number = self._begin()
        try:
            reply = await self._store.do(claim(self._store.keys, self._claim(number, 0)))
        finally:
            self._asking = False
            self._answered.set()
        self._settle(number, reply, None)
        return reply

    async def append(
        self, task: TaskId, token: Token, n: int, pieces: tuple[bytes, ...], allowed_s: float
    ) -> Appended:
        """Text of a run. It waits while the lease does not speak for this process. StoreError where
        it is refused for as long as a run may be silent: then it is taken from us anyway."""
        allowed_ms = round(allowed_s * 1000)
        await self._leased()
        return await self._until_answered(
            append(self._store.keys, task, token, n, pieces, allowed_ms)
        )

    async def finish(self, pulse: Pulse, outcome: Outcome) -> Finished:
        """The end of a run; the next one is claimed in the same call where that may be. StoreError:
        as for ``append``."""
        if outcome.what == "done":
            await self._leased()
        reply = await self._finish_and_claim(pulse, outcome) if self._claims_along() else None
        if reply is None:
            reply = await self._finish(pulse.id, pulse.token, outcome, None)
            if reply.status != "gap":
                self._held.end(pulse)
        return reply

    async def _finish_and_claim(self, pulse: Pulse, outcome: Outcome) -> Finished | None:
        """None where it was refused: that may be the claim's fault, and the end counts all the
        same."""
        number = self._begin()
        try:
            then = self._claim(number, int(pulse.slot))
            reply = await self._finish(pulse.id, pulse.token, outcome, then, patience_s=0)
        except StoreError:
            return None
        finally:
            self._asking = False
            self._answered.set()
        over = pulse if reply.status != "gap" else None
        self._settle(number, reply.claimed or Claimed("ok"), over)
        return reply

    async def hand_back(self, task: TaskId, token: Token) -> None:
        """A run that Redis thinks is here, and is not. Where that is refused, the next renewal
        names it again."""
        outcome = Outcome("back", message="its worker does not run it")
        with contextlib.suppress(StoreError):
            await self._finish(task, token, outcome, None, patience_s=0)

    def renewed(self) -> None:
        """The lease runs again; whoever waited for that goes on."""
        self._renewed.set()

    async def _leased(self) -> None:
        """Until the lease speaks for what this process says."""
        while not self._held.emits():
            await _event(self._renewed, self._limits.renew_s)

    def _begin(self) -> int:
        if self._unanswered is None:
            self._unanswered = self._held.ask()
        self._asking = True
        self._answered.clear()
        return self._unanswered

    def _settle(self, number: int, reply: Claimed, over: Pulse | None) -> None:
        self._unanswered = None
        self.took(number, reply.tasks, over)
        if reply.status in ("unknown", "superseded", "renew"):
            self.astray()

    def _claim(self, number: int, ending: int) -> Claim:
        free = self._held.free + ending if self._held.state is WorkerState.READY else 0
        return Claim(
            worker=self._who.id,
            instance=self._who.instance,
            k=number,
            free=free,
            queues=self.queues(),
            allowed_ms=round(self.allowed_s() * 1000),
            starve_ms=round(self._limits.starve_after_s * 1000),
        )

    def _claims_along(self) -> bool:
        if self._asking or self._unanswered is not None or self._hang.on():
            return False
        still_s = time.monotonic() - self._held.turned_s
        return still_s < SLOW_TURNS * self._limits.block_s

    async def _finish(
        self,
        task: TaskId,
        token: Token,
        outcome: Outcome,
        then: Claim | None,
        patience_s: float | None = None,
    ) -> Finished:
        call = finish(self._store.keys, self._who.id, task, token, outcome, then)
        return await self._until_answered(call, patience_s)

    async def _until_answered(self, call: Call[T], patience_s: float | None = None) -> T:
        """patience_s: how long a refusal that does not pass by itself may last; None: idle_s."""
        patience_s = self._limits.idle_s if patience_s is None else patience_s
        failures, refused_s = 0, 0.0
        try:
            while True:
                try:
                    reply = await self._store.do(call)
                except StoreError as error:
                    failures += 1
                    pause_s = wait_s(failures, self._limits.tick_s)
                    if error.passing or error.code in _UNTIL_LET_IN:
                        self._outage.lost("runs", error)
                    elif refused_s >= patience_s:
                        raise
                    else:
                        self._refused(error, patience_s)
                        refused_s += pause_s
                    await asyncio.sleep(pause_s)
                    continue
                self._refusal = ""
                self._outage.back("runs")
                return reply
        except BaseException:
            self._outage.gone("runs")
            raise

    def _refused(self, error: StoreError, patience_s: float) -> None:
        """Said once, however many runs meet it."""
        if error.message != self._refusal:
            self._refusal = error.message
            log.error("[redis] %s (%s); tried for %g s", error.message, error.hint, patience_s)


async def _event(event: asyncio.Event, limit_s: float) -> None:
    """Waits for the event to be set from now on, or for limit_s."""
    event.clear()
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return
