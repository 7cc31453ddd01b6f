"""One pass: begin, read what is due, decide, act, report. Any number of reapers may do it at once,
and one that dies in the middle is simply followed by the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cogrid.errors import UnreachableError
from cogrid.model.limits import Limits
from cogrid.reaper.acting import PURGED, carry_out
from cogrid.reaper.line import Line, expected, told
from cogrid.rules.act import Act, Tend
from cogrid.rules.plan import plan
from cogrid.rules.routing import Routing
from cogrid.store.client import Store
from cogrid.store.passes import SCHEMA, Tended, begin_pass
from cogrid.store.refusal import StoreError
from cogrid.store.seen import read_seen, read_server

BUDGET = 0.3
"""Part of pass_window_s that a pass may take. One that took longer than the window would make the
next one hold back, and so a loaded grid would never recover anything."""
PURGES = 20
"""Calls in a row that take ended tasks off the lists: 10,000 a pass, more than can end in one."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did, or would do. Times are Redis ms. last_pass_ms: of the pass before, 0: never.
    hold_until_ms: until then nothing is ended because of a deadline. next_ms: when something will
    be due, None where nothing is in sight. more: it stopped at its own bounds. problems: acts that
    the server refused, in sentences."""

    now_ms: int
    last_pass_ms: int = 0
    hold_until_ms: int = 0
    lines: tuple[Line, ...] = ()
    problems: tuple[str, ...] = ()
    next_ms: int | None = None
    more: bool = False

    @property
    def held(self) -> bool:
        """True where the pass had to hold back."""
        return self.now_ms < self.hold_until_ms

    @property
    def hold_s(self) -> float:
        """Seconds until the hold ends; 0 where there is none."""
        return max(0, self.hold_until_ms - self.now_ms) / 1000

    def idle_s(self) -> float | None:
        """Seconds since the pass before; None where there was none."""
        return (self.now_ms - self.last_pass_ms) / 1000 if self.last_pass_ms else None


def one_pass(
    store: Store,
    limits: Limits,
    routing: Routing,
    clock: Callable[[], float] = time.monotonic,
    *,
    whole: bool = False,
) -> Report:
    """Free what is stuck. clock: monotonic seconds. whole: look also where all seems well, for
    entries that no task confirms. Raises StoreError where the server cannot be
    used, UnreachableError where a newer cogrid has been at work in it."""
    end_s = clock() + BUDGET * limits.pass_window_s
    server = store.read(read_server())
    began = store.do(begin_pass(store.keys, server.run_id, server.replication_id, limits))
    if began.status == "newer":
        raise newer(store, began.schema)
    seen = store.read(read_seen(store.keys, routing, limits, whole=whole))
    acts = plan(seen, routing, limits)
    done = tuple(carry_out(acts, store, server.run_id, limits, lambda: clock() < end_s))
    more = seen.cut or len(done) < len(acts)
    done += _rest(done, store, server.run_id, limits)
    lines = tuple(line for line in (_told(act, outcome) for act, outcome in done) if line)
    return Report(
        now_ms=began.now_ms,
        last_pass_ms=began.last_pass_ms,
        hold_until_ms=began.hold_until_ms,
        lines=lines,
        problems=_problems(outcome for _, outcome in done),
        next_ms=seen.next_ms,
        more=more and bool(lines),
    )


def dry_run(store: Store, limits: Limits, routing: Routing) -> Report:
    """What a pass would do now; nothing is written."""
    seen = store.read(read_seen(store.keys, routing, limits, whole=True))
    mark = seen.grid.snapshot.reaper
    if mark.schema > SCHEMA:
        raise newer(store, mark.schema)
    lines = (expected(act) for act in plan(seen, routing, limits))
    return Report(
        now_ms=seen.now_ms,
        last_pass_ms=mark.last_pass_ms,
        hold_until_ms=mark.hold_until_ms,
        lines=tuple(line for line in lines if line),
        next_ms=seen.next_ms,
        more=seen.cut,
    )


def newer(store: Store, schema: int) -> UnreachableError:
    """The refusal to touch what a newer cogrid has written."""
    return UnreachableError(
        f"Redis at {store.shown} is used by a newer cogrid (schema {schema}, this one knows "
        f"{SCHEMA})",
        "update cogrid on this machine",
    )


def _rest(
    done: tuple[tuple[Act, Any], ...], store: Store, run_id: str, limits: Limits
) -> tuple[tuple[Act, Any], ...]:
    """What only shows while acting: more ended tasks than one call takes off the lists."""
    rest: tuple[tuple[Act, Any], ...] = ()
    full = any(_is_full(said) for _, said in done)
    while full and len(rest) < PURGES:
        rest += tuple(carry_out((Tend(()),), store, run_id, limits))
        full = _is_full(rest[-1][1])
    return rest


def _is_full(outcome: Any) -> bool:
    return isinstance(outcome, Tended) and outcome.purged >= PURGED


def _told(act: Act, outcome: Any) -> Line | None:
    return None if isinstance(outcome, StoreError) else told(act, outcome)


def _problems(outcomes: Iterable[Any]) -> tuple[str, ...]:
    refused = (outcome.message for outcome in outcomes if isinstance(outcome, StoreError))
    return tuple(dict.fromkeys(refused))
