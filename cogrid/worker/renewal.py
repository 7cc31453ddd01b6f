"""Renewals: a thread of its own, so that a hung event loop or a slow claim stops no lease."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from cogrid.model.limits import Limits
from cogrid.model.names import own_queue
from cogrid.model.worker import Wish
from cogrid.rules.hosts import told_address
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.fitness import read_fitness, require
from cogrid.store.outage import FIRST_TRY, Outage, wait_s
from cogrid.store.refusal import StoreError
from cogrid.store.roles import Role
from cogrid.store.workers import Renewed, Welcome, Who, hello, renew, wish
from cogrid.worker.held import Held, boot_s

log = logging.getLogger(__name__)

SPREAD = 0.2
"""Renewals come every renew_s, give or take this part: a fleet should not beat as one."""

CLOCK_RENEWALS = 12
"""After so many renewals Redis' clock is looked at again."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another machine has the name, and its lease runs. host: that machine."""

    host: str


@dataclass(frozen=True, slots=True)
class StruckOff:
    """An operator has struck this process off."""


Told = Renewed | Superseded | StruckOff | Exception
"""An exception: a bug ended the thread; a worker that nobody renews must not go on."""


class Renewal(threading.Thread):
    """Says hello, and renews until it is told to leave.

    connect: opens the connection of this thread. tell: called in this thread with every answer,
    and when (monotonic) what it answers was put together.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        who: Who,
        held: Held,
        limits: Limits,
        tell: Callable[[Told, float], None],
        outage: Outage,
    ) -> None:
        super().__init__(name=f"renewal of {who.worker}", daemon=True)
        self._connect = connect
        self._who = who
        self._held = held
        self._limits = limits
        self._tell = tell
        self._outage = outage
        self._wake = threading.Event()
        self._leaving = False
        self._stopped = False
        self._named = False
        self._ever_named = False
        self._fit = False
        self._refused_by = ""
        self._strayed = 0
        self._renewals = 0

    def now(self) -> None:
        """Renew at once."""
        self._wake.set()

    def leave(self) -> None:
        """One last renewal, which leaves the lease to run out, and the thread ends."""
        self._leaving = True
        self._wake.set()

    def stop(self) -> None:
        """The thread ends; nothing more is said."""
        self._stopped = True
        self._wake.set()

    def run(self) -> None:
        store = self._connect()
        try:
            self._renew_on(store)
        except Exception as error:
            self._tell(error, time.monotonic())
        finally:
            store.close()

    def _renew_on(self, store: Store) -> None:
        failures = 0
        while not self._stopped:
            self._wake.clear()
            leaving = self._leaving
            if leaving and not self._ever_named:
                self._outage.gone("renewals")
                return
            try:
                pause_s = self._turn(store)
                failures = 0
                self._outage.back("renewals")
            except StoreError as error:
                failures += 1
                self._outage.lost("renewals", error)
                pause_s = wait_s(failures, self._limits.tick_s)
            if leaving:
                return
            self._wake.wait(pause_s)

    def _turn(self, store: Store) -> float:
        """Hello where that is needed, and a renewal; how long to wait until the next."""
        if not self._named:
            self._check(store)
            refused = self._hello(store)
            if refused is not None:
                return self._turned_away(refused)
        asked_s, told_s = boot_s(), time.monotonic()
        life = self._held.life(0 if self._leaving else round(self._limits.lease_s * 1000))
        who = self._who
        reply = store.do(renew(store.keys, who.worker, who.instance, who.lock, life))
        if reply.status != "ok":
            return self._astray(reply)
        self._strayed = 0
        self._held.leased(asked_s)
        self._look_at_clock(store)
        self._end_of_wish(store, reply.wish)
        self._tell(reply, told_s)
        return self._limits.renew_s * random.uniform(1 - SPREAD, 1 + SPREAD)

    def _check(self, store: Store) -> None:
        """Once, before the first hello: can this server be used at all?"""
        if self._fit:
            return
        queue = own_queue(self._who.pool, self._who.worker)
        reading = read_fitness(store.keys, (queue,), self._who.worker, Role.WORKER)
        require(store.read(reading), log.warning)
        self._fit = True

    def _hello(self, store: Store) -> Welcome | None:
        """Takes the name, or the refusal."""
        asked, _, pairs = self._held.claims()
        lease_ms = round(self._limits.lease_s * 1000)
        who = replace(self._who, address=told_address(store.local_address()))
        welcome = store.do(hello(store.keys, who, lease_ms, asked, pairs))
        if welcome.status != "ok":
            return welcome
        self._named = self._ever_named = True
        self._renewals = 0
        return None

    def _turned_away(self, welcome: Welcome) -> float:
        """Another machine has the name: at the start we wait for its lease to run out; a process
        that had the name once has been superseded, or was struck off."""
        if self._ever_named:
            self._stopped = True
            fenced = welcome.status == "fenced"
            self._tell(StruckOff() if fenced else Superseded(welcome.host), time.monotonic())
            return 0.0
        if welcome.host != self._refused_by:
            self._refused_by = welcome.host
            log.warning(
                "[hello] refused: worker_id=%s is held by host %s, this is host %s; "
                "tried again until its lease ends, in %.1f s unless it lives; give one of them "
                "another name with --id, or stop the other one",
                self._who.worker, welcome.host, self._who.host, welcome.left_ms / 1000,
            )  # fmt: skip
        # Asked again when that lease ends, and not before: each refusal is an event.
        return max(welcome.left_ms / 1000 + 0.01, FIRST_TRY * self._limits.tick_s)

    def _astray(self, reply: Renewed) -> float:
        """Redis does not know this process: hello says who it is. Two that took the name from each
        other would do it at full speed, so each time takes a little longer."""
        if reply.status != "superseded":
            log.warning("[hello] again: Redis answered %r to a renewal", reply.status)
        self._named = False
        self._strayed += 1
        return 0.0 if self._strayed == 1 else wait_s(self._strayed, self._limits.tick_s)

    def _look_at_clock(self, store: Store) -> None:
        if self._renewals % CLOCK_RENEWALS == 0:
            self._held.redis_is_at(store.read(read_clock()))
        self._renewals += 1

    def _end_of_wish(self, store: Store, wanted: Wish) -> None:
        """A drain that was asked for until a certain time ends itself."""
        if wanted.state == "drain" and 0 < wanted.until_ms <= self._held.redis_ms():
            log.info("[drain] over: it was asked for until now, by %s", wanted.by)
            over = Wish("run", by="cogrid (until passed)")
            store.do(wish(store.keys, self._who.worker, over))
