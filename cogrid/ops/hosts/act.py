"""Units of many machines started, stopped and restarted: workers drained before, proved after."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cogrid.errors import CogridError, Exit, HostError
from cogrid.model.host import Host, Scope
from cogrid.model.limits import Limits
from cogrid.model.worker import Wish, Worker
from cogrid.ops.drain import DRAIN, RUN, Step, drain, drained
from cogrid.ops.hosts.acts import Act, Plan, Verb
from cogrid.ops.hosts.logs import Trouble
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.operator import operator
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.ask import look
from cogrid.ops.unit.explain import Word, explain
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import parse_target
from cogrid.store.administration import note
from cogrid.store.client import Store
from cogrid.store.snapshot import read_snapshot
from cogrid.store.workers import wish

SYSTEMCTL_S = 260.0
"""A unit of ours has 150 s to stop and 90 s to start."""
POLL_S = 0.25
SEEN_S = 60.0
"""A worker that systemd calls active polls within seconds; its models may take longer."""
SPARE_S = 60.0
"""Longer than the drain is waited for: should this side die, the worker resumes by itself."""

_SYSTEMCTL = """\
verb=$1 unit=$2 scope=$3
set --
if [ "$scope" = user ]; then
    set -- --user
    export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
fi
[ "$verb" = stop ] || systemctl "$@" reset-failed "$unit" 2>/dev/null
systemctl "$@" "$verb" "$unit"
"""


@dataclass(frozen=True, slots=True)
class Timing:
    """drain_s: how long a worker may take to finish what it runs; None: it is not drained. at_once:
    so many hosts at a time."""

    drain_s: float | None
    at_once: int = 32


@dataclass(frozen=True, slots=True)
class Acted:
    """One unit, after. state: a word such as running. done: it is as it should be; for a worker
    that was started: the grid has seen it poll. error: why not, else null. journal: its last lines
    where it failed."""

    host: str
    unit: str
    worker: str | None
    was: str
    state: str | None
    done: bool
    error: str | None = None
    hint: str | None = None
    journal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """dry_run: nothing was touched, acts says what would be. troubles: hosts that could not be
    asked."""

    verb: Verb
    dry_run: bool
    acts: tuple[Acted, ...]
    troubles: tuple[Trouble, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where a host could not be asked or failed, else 0."""
        fine = not self.troubles and (self.dry_run or all(act.done for act in self.acts))
        return Exit.OK if fine else Exit.SOME_HOSTS


def would(plan: Plan, dry_run: bool = True) -> Done:
    """What a dry run answers, and what is answered where there is nothing to do."""
    acts = (Acted(a.host, a.unit, a.worker, a.state, None, False) for a in plan.acts)
    return Done(plan.verb, dry_run, tuple(acts), plan.troubles)


def carry_out(
    plan: Plan,
    hosts: Iterable[Host],
    access: Access,
    store: Callable[[], Store] | None,
    limits: Limits,
    timing: Timing,
    say: Callable[[str], None],
) -> Done:
    """Does it on all hosts at once, one unit of a host after the other. store: opens Redis; None
    where the grid is not asked, so nothing is drained or proved. say: called with a line when
    something gets on, from several threads."""
    by_host = {
        host: [act for act in plan.acts if act.host == host.address]
        for host in dict.fromkeys(hosts)
    }
    busy = [host for host, acts in by_host.items() if acts]

    def ask(host: Host) -> tuple[Acted, ...]:
        with contextlib.ExitStack() as stack:
            grid = stack.enter_context(contextlib.closing(store())) if store else None
            there = stack.enter_context(connect(parse_target(host.address), access))
            one = _One(host, there, grid, limits, timing, say)
            return tuple(_done(one, plan.verb, act) for act in by_host[host])

    most = max((len(acts) for acts in by_host.values()), default=0)
    a_unit_s = (timing.drain_s or 0.0) + SYSTEMCTL_S + SEEN_S
    answers = ask_each(busy, ask, access.connect_s + most * a_unit_s, timing.at_once)
    lost = (_lost(by_host[answer.host], answer.error) for answer in answers if answer.error)
    acted = [act for answer in answers if answer.value for act in answer.value]
    return Done(plan.verb, False, (*acted, *(act for acts in lost for act in acts)), plan.troubles)


def _done(one: _One, verb: Verb, act: Act) -> Acted:
    """What Redis refuses, or a worker that is gone meanwhile, is that one unit's failure."""
    try:
        return one.do(verb, act)
    except HostError:
        raise
    except CogridError as error:
        hint = error.hint or None
        return Acted(act.host, act.unit, act.worker, act.state, None, False, error.message, hint)


def _lost(acts: Iterable[Act], error: HostError) -> list[Acted]:
    return [
        Acted(a.host, a.unit, a.worker, a.state, None, False, error.message, error.hint or None)
        for a in acts
    ]


class _One:
    """One host."""

    def __init__(
        self,
        host: Host,
        there: Connection,
        grid: Store | None,
        limits: Limits,
        timing: Timing,
        say: Callable[[str], None],
    ) -> None:
        self._host = host
        self._there = there
        self._grid = grid
        self._limits = limits
        self._timing = timing
        self._say = say
        self._asked = False
        """A drain was asked of the worker at hand, by us and not by an operator before."""

    def do(self, verb: Verb, act: Act) -> Acted:
        """Drain, act, look, wait for the grid. What fails leaves the rest undone."""
        acted = Acted(act.host, act.unit, act.worker, act.state, act.state, False)
        before = self._worker(act)
        try:
            if verb is not Verb.START and before and not self._drain(act, before):
                return replace(
                    acted,
                    error=f"{act.worker} still runs something after {self._timing.drain_s:g} s, so "
                    "it was left as it was",
                    hint="--timeout waits longer, --now does not wait",
                )
            self._note(verb, act)
            acted = self._systemctl(verb, act, acted)
        finally:
            self._undrain(before)
        if verb is Verb.STOP or not acted.done or not act.worker or not self._grid:
            return acted
        # systemctl leaves alone what runs, so its process is the one that has to be seen.
        stays = verb is Verb.START and act.state == Word.RUNNING
        return self._seen(act, acted, before.instance if before and not stays else "")

    def _drain(self, act: Act, worker: Worker) -> bool:
        """Whether the worker has nothing left."""
        limit_s = self._timing.drain_s
        if limit_s is None or self._grid is None or act.worker is None:
            return True
        if worker.wish.state != DRAIN:
            self._asked = True
            drain(self._grid, act.worker, limit_s + SPARE_S)
        end_s = time.monotonic() + limit_s
        for step in drained(self._grid, self._limits, act.worker):
            if step.over:
                return True
            if time.monotonic() >= end_s:
                return False
            self._tell(act, step)
        return True

    def _tell(self, act: Act, step: Step) -> None:
        line = f"{act.host}: {act.worker} still runs {step.runs}, {step.waiting} wait for it"
        self._say(f"{line} ({step.hint})" if step.hint else line)

    def _systemctl(self, verb: Verb, act: Act, acted: Acted) -> Acted:
        root = act.scope != Scope.USER
        result = self._there.run(
            _SYSTEMCTL, verb, act.unit, act.scope, timeout_s=SYSTEMCTL_S, root=root
        )
        facts, _, _ = look(self._there, (act.unit,), act.scope)
        unit = next(u for u in facts.units if (u.name, u.scope) == (act.unit, act.scope))
        told = explain(unit.state, Scope(unit.scope))
        acted = replace(acted, state=told.word)
        if (unit.state.active == "active") is (verb is not Verb.STOP):
            return replace(acted, done=True)
        said = result.err.decode(errors="replace").strip()
        return replace(
            acted,
            error=f"{act.host}: {told.what}",
            hint=told.cure or said or commands.logs(self._host),
            journal=tuple(line.text for line in unit.journal),
        )

    def _seen(self, act: Act, acted: Acted, before: str) -> Acted:
        """Done only when the grid has seen the process poll. before: the instance that it must not
        be, "" where any will do."""
        end_s = time.monotonic() + SEEN_S
        while True:
            worker = self._worker(act)
            if worker and worker.polled_at_ms and worker.instance != before:
                return acted
            if time.monotonic() >= end_s:
                return replace(
                    acted,
                    done=False,
                    error=f"{act.unit} on {act.host} is active, and the grid has not seen "
                    f"{act.worker} poll within {SEEN_S:g} s",
                    hint=commands.on_host(self._host, "sanity"),
                )
            time.sleep(POLL_S)

    def _worker(self, act: Act) -> Worker | None:
        if self._grid is None or act.worker is None:
            return None
        found = self._grid.read(read_snapshot(self._grid.keys, info=False))
        worker = found.worker(act.worker)
        return worker if worker and worker.lease_until_ms else None

    def _undrain(self, worker: Worker | None) -> None:
        """The next process of that name is to take work, whatever became of this one; unless an
        operator had asked it not to."""
        asked, self._asked = self._asked, False
        if not asked or self._grid is None or worker is None:
            return
        by = operator()
        with contextlib.suppress(CogridError):
            self._grid.do(wish(self._grid.keys, worker.id, Wish(RUN, 0, by), f"run by {by}"))

    def _note(self, verb: Verb, act: Act) -> None:
        if self._grid is None:
            return
        what = f"{verb} of {act.unit} on {act.host} by {operator()}"
        self._grid.do(note(self._grid.keys, what, worker=act.worker or ""))
