"""What a worker holds, seen by two threads: its event loop changes it, its renewals report it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, Token
from cogrid.model.worker import Offer, WorkerState
from cogrid.store.workers import Held as HeldRun
from cogrid.store.workers import Life
from cogrid.worker.machine import machine

LEASE_MARGIN = 0.1
"""The last part of a lease (2 s of 20 s), in which a worker that was not renewed emits nothing:
what was sent before arrives while the lease still runs."""

_json = msgspec.json.Encoder()
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_s() -> float:
    """Seconds that also pass while the machine sleeps, as they do for Redis."""
    return time.clock_gettime(_BOOT)


class Pulse:
    """One run as a renewal reports it. at_s: its last progress (monotonic). allowed_s: how long it
    may be silent from there on. slot: it takes one; a chore does not."""

    __slots__ = ("allowed_s", "at_s", "id", "slot", "token")

    def __init__(self, task: TaskId, token: Token, at_s: float, allowed_s: float) -> None:
        self.id = task
        self.token = token
        self.at_s = at_s
        self.allowed_s = allowed_s
        self.slot = True


class Held:
    """Runs, claim numbers, state and models of one worker.

    Whatever a renewal tells together is changed together, under the lock. ``clock`` and
    ``boot`` are monotonic seconds; the second goes on while the machine sleeps.
    """

    def __init__(
        self,
        limits: Limits,
        slots: int,
        supports: tuple[str, ...],
        clock: Callable[[], float] = time.monotonic,
        boot: Callable[[], float] = boot_s,
    ) -> None:
        self.slots = slots
        self.supports = supports
        self.ready = False
        self.draining = False
        self.away = False
        self.turned_s = clock()
        """When the claim loop last turned."""
        self._limits = limits
        self._clock = clock
        self._boot = boot
        self._lock = threading.Lock()
        self._runs: dict[Token, Pulse] = {}
        self._asked = 0
        self._settled = 0
        self._offers: tuple[tuple[Offer, float], ...] = ()
        self._lease_until_s = 0.0
        self._redis_ahead_ms: float | None = None

    # The event loop's side.

    @property
    def state(self) -> WorkerState:
        """What it says of itself. The last word first: who goes away takes nothing more."""
        if self.away:
            return WorkerState.AWAY
        if not self.ready:
            return WorkerState.STARTING
        return WorkerState.DRAINING if self.draining else WorkerState.READY

    @property
    def free(self) -> int:
        """Slots without a run, whatever the state."""
        return max(0, self.slots - sum(pulse.slot for pulse in self._runs.values()))

    def ask(self) -> int:
        """The number of the next claim."""
        with self._lock:
            self._asked += 1
            return self._asked

    def settle(self, number: int, taken: Sequence[Pulse], over: Pulse | None = None) -> None:
        """A claim was answered: its runs are held from here on. over: a run that ended with it."""
        with self._lock:
            if over is not None:
                self._runs.pop(over.token, None)
            for pulse in taken:
                self._runs[pulse.token] = pulse
            self._settled = max(self._settled, number)

    def end(self, pulse: Pulse) -> None:
        """A run is over."""
        with self._lock:
            self._runs.pop(pulse.token, None)

    def offer(self, offers: tuple[tuple[Offer, float], ...]) -> None:
        """These models, each with when its state began (monotonic)."""
        self._offers = offers

    def emits(self) -> bool:
        """True while its lease speaks for what it says; else it keeps its text to itself."""
        return self._boot() < self._lease_until_s - LEASE_MARGIN * self._limits.lease_s

    # The renewing thread's side.

    def leased(self, asked_s: float) -> None:
        """Redis took a renewal that was sent at asked_s (boot time)."""
        self._lease_until_s = asked_s + self._limits.lease_s

    def redis_is_at(self, now_ms: int) -> None:
        """What Redis' clock shows now; only for telling since when a model is as it is."""
        self._redis_ahead_ms = now_ms - self._clock() * 1000

    def redis_ms(self) -> int:
        """Redis' clock as far as it is known, else 0."""
        ahead_ms = self._redis_ahead_ms
        return 0 if ahead_ms is None else round(self._clock() * 1000 + ahead_ms)

    def claims(self) -> tuple[int, int, tuple[tuple[TaskId, Token], ...]]:
        """The last claim number that was sent, the last that is settled, and the runs."""
        with self._lock:
            pairs = tuple((pulse.id, pulse.token) for pulse in self._runs.values())
            return self._asked, self._settled, pairs

    def life(self, lease_ms: int) -> Life:
        """Everything at one instant."""
        now_s = self._clock()
        with self._lock:
            runs = tuple(
                HeldRun(
                    pulse.id,
                    pulse.token,
                    max(0, round((now_s - pulse.at_s) * 1000)),
                    round((pulse.allowed_s + self._limits.tick_s) * 1000),
                )
                for pulse in self._runs.values()
            )
            settled = self._settled
        return Life(
            state=self.state,
            offers=tuple(self._dated(offer, at_s) for offer, at_s in self._offers),
            supports=self.supports,
            slots=self.slots,
            claim_age_ms=round((now_s - self.turned_s) * 1000),
            settled=settled,
            held=runs,
            lease_ms=lease_ms,
            report=self._report(),
        )

    def _report(self) -> bytes:
        """Further facts for whoever looks at the hash."""
        loaded = [offer.name for offer, _ in self._offers if offer.loaded]
        return _json.encode({"loaded": loaded, **machine()})

    def _dated(self, offer: Offer, at_s: float) -> Offer:
        ahead_ms = self._redis_ahead_ms
        return offer if ahead_ms is None else replace(offer, since_ms=round(at_s * 1000 + ahead_ms))
