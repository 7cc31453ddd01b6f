"""Pass after pass, until told to stop. A pass that fails is said once and tried again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from cogrid.errors import UnreachableError
from cogrid.model.limits import Limits
from cogrid.reaper.one_pass import Report, one_pass
from cogrid.rules.routing import Routing
from cogrid.signals import Told
from cogrid.store.client import Store
from cogrid.store.fitness import read_fitness, require
from cogrid.store.refusal import StoreError
from cogrid.store.roles import Role

LEAST = 0.2
"""Part of a tick that lies at least between two passes: what falls due meanwhile waits for it, and
a hundred thousand deadlines spread over a minute do not make a pass each."""
SPREAD = 0.1
"""Passes come up to this part early, so that several reapers do not go in step."""

log = logging.getLogger("cogrid.reaper")


def run(
    store: Store,
    limits: Limits,
    routing: Routing,
    stop: Told,
    on_turn: Callable[[], None] = lambda: None,
) -> None:
    """Pass, wait, pass, until ``stop`` is set. The store is this loop's own. on_turn: called after
    each pass, failed or not. Raises UnreachableError only where a newer cogrid has taken over, or
    the server cannot be used as it is; everything else may mend itself."""
    turns = _Turns(store, limits, routing)
    while not stop.is_set():
        pause_s = turns.turn()
        on_turn()
        stop.wait(pause_s)


class _Turns:
    """One pass after another, and what was said of the last one."""

    def __init__(self, store: Store, limits: Limits, routing: Routing) -> None:
        self._store = store
        self._limits = limits
        self._routing = routing
        self._phase = ""
        self._problems: frozenset[str] = frozenset()
        self._fit = False

    def turn(self) -> float:
        """One pass; seconds until the next."""
        try:
            self._check()
            report = one_pass(self._store, self._limits, self._routing)
        except StoreError as error:
            self._enter(error.code or "silent", f"{error.message}; trying on", logging.WARNING)
        except UnreachableError:
            raise
        except Exception:
            # A fault of ours in one pass must not leave the grid without a reaper.
            if self._phase != "fault":
                log.exception("[reaper] a pass failed; trying on")
            self._phase = "fault"
        else:
            self._tell(report)
            return wait_s(report, self._limits, random.random())
        return self._limits.tick_s * (1 - SPREAD * random.random())

    def _check(self) -> None:
        """Once, as soon as Redis is there: can it be used at all?"""
        if self._fit:
            return
        problems = self._store.read(read_fitness(self._store.keys, role=Role.REAPER))
        require(problems, lambda told: log.warning("[reaper] %s", told))
        self._fit = True

    def _tell(self, report: Report) -> None:
        if report.held:
            told = f"holding back for {report.hold_s:.1f} s: {hold_reason(report, self._limits)}"
            self._enter("held", told)
        else:
            self._enter("well", "at work")
        hints = dict.fromkeys(line.hint for line in report.lines if line.hint)
        for line in report.lines:
            log.log(logging.WARNING if line.edge in ("fail", "dead") else logging.INFO, line.text)
        for hint in hints:
            log.warning("[reaper] HINT %s", hint)
        for problem in sorted(frozenset(report.problems) - self._problems):
            log.warning("[reaper] %s", problem)
        self._problems = frozenset(report.problems)

    def _enter(self, phase: str, told: str, level: int = logging.INFO) -> None:
        """Say it where the phase is a new one."""
        if phase != self._phase:
            log.log(level, "[reaper] %s", told)
        self._phase = phase


def wait_s(report: Report, limits: Limits, chance: float) -> float:
    """Seconds until the next pass: until something is due, at most a tick. chance: 0 to 1."""
    if report.more:
        return 0.0
    tick_s = limits.tick_s * (1 - SPREAD * chance)
    if report.next_ms is None:
        return tick_s
    # A deadline of ms m has passed from m + 1 ms on.
    due_s = (report.next_ms + 1 - report.now_ms) / 1000
    return max(LEAST * limits.tick_s, min(tick_s, due_s))


def hold_reason(report: Report, limits: Limits) -> str:
    """Why it holds back, as far as the report tells."""
    idle_s = report.idle_s()
    if idle_s is None:
        return "this is the first pass on this server"
    if idle_s > limits.pass_window_s:
        return f"no pass for {idle_s:.1f} s"
    if idle_s < 0:
        return f"the server's clock went back by {-idle_s:.1f} s"
    return "the server, its clock or its reaper was disturbed"
