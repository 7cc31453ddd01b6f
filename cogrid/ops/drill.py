"""A fire drill on the running grid: a throw-away worker fails, and it is measured how long it takes
until another one has its task. Pool, model and workers are the drill's own, so nobody else's work
is touched; nothing of it is left behind, however it ends."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cogrid.model.event import Event
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Kind
from cogrid.ops.operator import operator
from cogrid.ops.puppet import Puppet
from cogrid.rules.drill import NOTICED, TOLD, Fault, bound_s, silence_s
from cogrid.rules.health import is_dead
from cogrid.store.administration import forget_model, note, purge
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.events import read_events, read_last_event
from cogrid.store.refusal import StoreError
from cogrid.store.snapshot import read_snapshot
from cogrid.store.tasks import Submission, cancel, submit
from cogrid.store.workers import forget

LOOK_S = 0.1
"""Seconds between two turns of the drill's workers."""
MARKER_S = 3.0
"""Two passes, after which no pass can be about that still knows the drill's model."""
OURS = re.compile(r"drill-[0-9a-f]{6}-[ab]")


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that has happened, at_s seconds after the fault (below 0: before it)."""

    at_s: float
    what: str


@dataclass(frozen=True, slots=True)
class Drilled:
    """noticed_s, recovered_s: seconds from the fault until the grid acted, and until another worker
    had the task; null where that did not come. bound_s: by when it must. reason: the trigger that
    fired; expected: the one that had to. ok: it was that one, and in time."""

    fault: str
    name: str
    dry_run: bool
    by: str | None
    bound_s: float
    noticed_s: float | None
    recovered_s: float | None
    expected: str
    reason: str | None
    ok: bool
    hint: str | None
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a drill would do now. reaper: one is at work. hold_s: so long it takes nothing back."""

    fault: Fault
    bound_s: float
    hold_s: float
    reaper: bool


def plan_drill(store: Store, limits: Limits, fault: Fault) -> Outlook:
    """How long it may take."""
    snapshot = store.read(read_snapshot(store.keys, info=False))
    hold_s = max(0, snapshot.reaper.hold_until_ms - snapshot.taken_at_ms) / 1000
    idle_ms = snapshot.taken_at_ms - snapshot.reaper.last_pass_ms
    alive = idle_ms <= limits.pass_window_s * 1000
    return Outlook(fault, bound_s(fault, limits, hold_s), hold_s, alive)


class Drill:
    """One drill. told: called with every moment as it comes."""

    def __init__(
        self, store: Store, limits: Limits, outlook: Outlook, told: Callable[[Moment], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._store = store
        self._limits = limits
        self._outlook = outlook
        self._told = told
        self._sleep = sleep
        self.name = f"drill-{secrets.token_hex(3)}"
        self.by = operator()
        host = self.by.partition("@")[2]
        self._faulty = Puppet(store, limits, f"{self.name}-a", self.name, host)
        self._helper = Puppet(store, limits, f"{self.name}-b", self.name, host)
        self._task = TaskId(f"drill{secrets.token_hex(8)}")
        self._after = "-"
        self._moments: list[Moment] = []
        self._fault_ms = 0
        self._noticed: Event | None = None
        self._recovered: Event | None = None

    def run(self) -> Drilled:
        """Make the fault, watch, clean up. The cleaning is done whatever happens."""
        try:
            self._prepare()
            self._watch()
            self._helper.finish()
        finally:
            self._clean()
        return self._result()

    def _prepare(self) -> None:
        keys, fault = self._store.keys, self._outlook.fault
        self._store.do(note(keys, f"drill {fault}: {self.name} by {self.by}"))
        _sweep(self._store)
        self._after = self._store.read(read_last_event(keys))
        self._helper.appear()
        self._helper.claim(self._patience_s)
        self._faulty.appear()
        if fault is not Fault.GHOST:
            self._faulty.claim(self._patience_s)
        self._submit()
        if fault is not Fault.GHOST:
            zombie = fault is Fault.ZOMBIE
            self._faulty.claim(silence_s(self._limits) if zombie else 2 * self._patience_s)
        self._fault_ms = self._store.read(read_clock())
        self._say(0.0, f"{self._faulty.id} {TOLD[fault]}")

    def _submit(self) -> None:
        """The client's lease ends with the drill, should this process be killed."""
        patience_ms = round(1000 * self._patience_s)
        self._store.do(
            submit(
                self._store.keys,
                Submission(
                    self._task, Kind.CHAT, self._faulty.model, self._faulty.queue,
                    self._faulty.shared, b"{}", "cogrid drill", streamed=False,
                    queue_timeout_ms=2 * patience_ms, orphan_ms=2 * patience_ms, keep_ms=60_000,
                ),
            )
        )  # fmt: skip

    @property
    def _patience_s(self) -> float:
        """A lease more than the bound: what a disturbed server or reaper takes."""
        return self._outlook.bound_s + self._limits.lease_s

    def _watch(self) -> None:
        renew_ms = self._limits.renew_s * 1000
        renewed_ms = 0
        while self._recovered is None:
            now_ms = self._store.read(read_clock())
            silent_s = (now_ms - self._fault_ms) / 1000
            if silent_s > self._patience_s:
                return
            if now_ms - renewed_ms >= renew_ms:
                renewed_ms = now_ms
                self._helper.renew()
                if self._outlook.fault is not Fault.DEAD:
                    self._faulty.renew(silent_s, silence_s(self._limits))
            self._helper.claim(self._patience_s)
            self._look()
            self._sleep(LOOK_S)

    def _look(self) -> None:
        for event in self._events():
            if event.edge in ("moved", "reaped") and self._noticed is None:
                self._noticed = event
                self._say(self._after_fault_s(event), f"{event.edge}: {event.reason}")
            if event.edge.startswith("claimed") and event.worker == self._helper.id:
                self._recovered = event
                self._say(self._after_fault_s(event), f"{self._helper.id} has the task")

    def _events(self) -> Iterator[Event]:
        found = self._store.read(read_events(self._store.keys, self._after))
        if found:
            self._after = found[-1].id
        return (event for event in found if event.task == self._task)

    def _after_fault_s(self, event: Event) -> float:
        return round((event.at_ms - self._fault_ms) / 1000, 1)

    def _say(self, at_s: float, what: str) -> None:
        moment = Moment(at_s, what)
        self._moments.append(moment)
        self._told(moment)

    def _clean(self) -> None:
        """Each step for itself; the first that the server refuses is told when all were tried."""
        keys, refused = self._store.keys, None
        for step in (
            lambda: self._store.do(cancel(keys, self._task, "the drill is over")),
            self._faulty.vanish,
            self._helper.vanish,
            lambda: self._store.do(purge(keys, (self._task,), dead=False, least_ms=0)),
            lambda: self._store.do(purge(keys, (self._task,), dead=True, least_ms=0)),
            self._unlearn,
        ):
            try:
                step()
            except StoreError as error:
                refused = refused or error
        if refused:
            raise refused

    def _unlearn(self) -> None:
        """The model is known no more. A pass that is about may still stamp it, so once more."""
        self._store.do(forget_model(self._store.keys, self._faulty.model))
        if self._outlook.reaper:
            self._sleep(min(MARKER_S, 2 * self._limits.tick_s))
            self._store.do(forget_model(self._store.keys, self._faulty.model))

    def _result(self) -> Drilled:
        fault, noticed, recovered = self._outlook.fault, self._noticed, self._recovered
        reason = noticed.reason.partition(" ")[0] if noticed else None
        recovered_s = self._after_fault_s(recovered) if recovered else None
        in_time = recovered_s is not None and recovered_s <= self._outlook.bound_s
        return Drilled(
            fault=fault,
            name=self.name,
            dry_run=False,
            by=self.by,
            bound_s=self._outlook.bound_s,
            noticed_s=self._after_fault_s(noticed) if noticed else None,
            recovered_s=recovered_s,
            expected=NOTICED[fault],
            reason=reason,
            ok=in_time and reason == NOTICED[fault],
            hint=None if in_time else self._hint(),
            moments=tuple(self._moments),
        )

    def _hint(self) -> str:
        snapshot = self._store.read(read_snapshot(self._store.keys, info=False))
        idle_s = (snapshot.taken_at_ms - snapshot.reaper.last_pass_ms) / 1000
        if not snapshot.reaper.last_pass_ms or idle_s > self._limits.pass_window_s:
            return "no reaper is running: cogrid reaper --daemon, or install it as a service"
        return "see what the reaper did meanwhile: cogrid events --since 5m"


def _sweep(store: Store) -> None:
    """Strike off what a drill has left that was killed."""
    snapshot: Snapshot = store.read(read_snapshot(store.keys, info=False, stray=True))
    for worker in snapshot.workers:
        if OURS.fullmatch(worker.id) and is_dead(worker, snapshot.taken_at_ms):
            with contextlib.suppress(StoreError):
                store.do(forget(store.keys, worker.id, False, "cogrid drill"))
                store.do(forget_model(store.keys, worker.pool))
