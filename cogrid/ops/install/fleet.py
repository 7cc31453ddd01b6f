"""Many hosts are looked at, shown, and installed at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cogrid.errors import CogridError, Exit, HostError, UnreachableError
from cogrid.model.host import Host, Scope
from cogrid.model.limits import Limits
from cogrid.ops.install.apply import NotDoneError, carry_out
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.inspect import Job, inspect
from cogrid.ops.install.objections import Objection
from cogrid.ops.install.order import Order
from cogrid.ops.install.plan import Plan
from cogrid.ops.install.steps import INSTALL_S
from cogrid.ops.install.undoing import BACK_S, Undoing
from cogrid.ops.operator import operator
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.remote.fan_out import ask_all
from cogrid.remote.target import Target, parse_target
from cogrid.store.client import Store

LOOK_S = 900.0
"""For the looks at all hosts; nearly all of it for wheels that are fetched."""
AT_ONCE = 16
"""Hosts at a time: each is sent some megabytes."""

PLANNED, NOTHING, INSTALLED, BACK = "planned", "nothing to do", "installed", "rolled back"
REFUSED, FAILED, NOT_ASKED = "refused", "failed", "not asked"
FINE = (PLANNED, NOTHING, INSTALLED, BACK)
Say = Callable[[str, str], None]
"""Called with a host and a line about it, from several threads."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A host that could not be looked at."""

    host: Host
    shown: str
    error: CogridError


@dataclass(frozen=True, slots=True)
class HostInstall:
    """One unit on one host. state: planned, nothing to do, installed, rolled back, refused (nothing
    was touched, ``objections`` say why), failed (``step`` says at which step, ``error`` why; it was
    taken back), not asked. steps: what is done, in order. diff: of the unit. variables: of its
    environment file, by name: + new, - gone, ~ another value. journal: the unit's last lines where
    it did not start. took_s: null where nothing was done."""

    host: str
    unit: str | None
    state: str
    steps: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    objections: tuple[Objection, ...] = ()
    step: str | None = None
    error: str | None = None
    hint: str | None = None
    journal: tuple[str, ...] = ()
    took_s: float | None = None

    @property
    def changes(self) -> bool:
        """Whether the diff is of a unit that is there, and not all of a new one."""
        return bool(self.diff) and not self.diff[0].endswith("/dev/null")


@dataclass(frozen=True, slots=True)
class Install:
    """dry_run: nothing was touched. by: who has done it, null in a dry run."""

    dry_run: bool
    by: str | None
    hosts: tuple[HostInstall, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where something was not done on a host, else 0."""
        return Exit.OK if all(host.state in FINE for host in self.hosts) else Exit.SOME_HOSTS


def look_at(
    hosts: Iterable[Host],
    order: Order,
    access: Access,
    open_store: Callable[[], Store],
    say: Say,
) -> tuple[Job | Lost, ...]:
    """What is to be done on each; nothing is changed."""
    by_target: dict[Target, list[Host]] = {}
    for host in hosts:
        by_target.setdefault(parse_target(host.address), []).append(host)

    def ask(target: Target) -> tuple[Job | Lost, ...]:
        limits = order.config.limits
        with connect(target, access) as connection, Grid(open_store(), limits) as grid:
            for remark in connection.notes:
                say(target.shown, remark)
            return tuple(
                _looked(connection, host, order, grid, lambda line: say(target.shown, line))
                for host in by_target[target]
            )

    answers = ask_all(tuple(by_target), ask, LOOK_S, AT_ONCE)
    return tuple(
        found
        for (target, meant), answer in zip(by_target.items(), answers, strict=True)
        for found in (
            (Lost(host, target.shown, answer) for host in meant)
            if isinstance(answer, HostError)
            else answer
        )
    )


def _looked(
    connection: Connection, host: Host, order: Order, grid: Grid, tell: Callable[[str], None]
) -> Job | Lost:
    try:
        return inspect(connection, host, order, grid, tell)
    except UnreachableError:
        raise
    except CogridError as error:
        return Lost(host, connection.target.shown, error)


def planned(found: Iterable[Job | Lost]) -> Install:
    """A dry run, or what is shown before the question."""
    return Install(True, None, tuple(_shown(each) for each in found))


def _shown(found: Job | Lost) -> HostInstall:
    if isinstance(found, Lost):
        return _lost(found)
    plan = found.plan
    state = REFUSED if plan.objections else PLANNED if plan.steps else NOTHING
    return _of(found.shown, plan, state)


def _of(host: str, plan: Plan, state: str) -> HostInstall:
    return HostInstall(
        host,
        plan.unit,
        state,
        tuple(step.what for step in plan.steps),
        plan.diff,
        plan.variables,
        plan.notes,
        plan.objections,
    )


def _lost(found: Lost) -> HostInstall:
    return HostInstall(
        found.shown,
        None,
        NOT_ASKED,
        error=found.error.message,
        hint=found.error.hint or None,
    )


def install(
    found: tuple[Job | Lost, ...],
    order: Order,
    access: Access,
    open_store: Callable[[], Store],
    say: Say,
) -> Install:
    """Carry the plans out, on all hosts at once."""
    work = _Work(order, access, open_store, say, operator())
    return Install(False, work.by, work.all(found))


class _Work:
    """All plans of one call. by: who has it done."""

    def __init__(
        self, order: Order, access: Access, open_store: Callable[[], Store], say: Say, by: str
    ) -> None:
        self.by = by
        self._order = order
        self._access = access
        self._open_store = open_store
        self._say = say
        self._at_work: dict[Target, Scope] = {}
        """Hosts on which something is begun and not yet kept."""

    def all(self, found: tuple[Job | Lost, ...]) -> tuple[HostInstall, ...]:
        """What became of each, in their order."""
        results = [_shown(each) for each in found]
        by_target: dict[Target, list[int]] = {}
        for number, each in enumerate(found):
            if isinstance(each, Job) and each.plan.is_todo:
                by_target.setdefault(parse_target(each.host.address), []).append(number)

        def ask(target: Target) -> bool:
            for number in by_target[target]:
                job = found[number]
                assert isinstance(job, Job)
                results[number] = self._one(target, job)
            return True

        longest = max(map(len, by_target.values()), default=0)
        limit_s = -(-len(by_target) // AT_ONCE) * longest * _unit_s(self._order.config.limits)
        try:
            answers = ask_all(tuple(by_target), ask, limit_s, AT_ONCE)
        except KeyboardInterrupt:
            self._take_back()
            raise
        for (_, numbers), answer in zip(by_target.items(), answers, strict=True):
            if isinstance(answer, HostError):
                for number in numbers:
                    if results[number].state == PLANNED:
                        results[number] = _failed(results[number], None, answer)
        return tuple(results)

    def _one(self, target: Target, job: Job) -> HostInstall:
        """Looked at once more, since somebody may have been there while the question was open."""
        begun_s, shown = time.monotonic(), _shown(job)
        try:
            with connect(target, self._access) as connection, self._grid() as grid:
                return self._done(connection, target, job, grid, begun_s)
        except NotDoneError as error:
            if error.step == "begin":  # what is there may be another one's
                self._at_work.pop(target, None)
            return _failed(shown, error.step, error, error.lines)
        except CogridError as error:
            return _failed(shown, "look", error)

    def _done(
        self, connection: Connection, target: Target, job: Job, grid: Grid, begun_s: float
    ) -> HostInstall:
        def tell(line: str) -> None:
            self._say(job.shown, line)

        now = inspect(connection, job.host, self._order, grid, tell)
        if not _is_within(now.plan, job.plan):
            raise NotDoneError(
                "look", "the host has changed since its plan was shown", "run it again"
            )
        if not now.plan.steps:
            return _of(job.shown, now.plan, NOTHING)
        back = self._order.wishes.rollback
        verb = f"install-unit{' --rollback' if back else ''}"
        grid.tell(f"{verb} {job.plan.unit} on {job.shown} by {self.by}", job.settings.id)
        self._at_work[target] = job.scope
        carry_out(connection, now, grid, tell, lambda: connect(target, self._access))
        del self._at_work[target]
        return replace(
            _of(job.shown, now.plan, BACK if back else INSTALLED),
            took_s=round(time.monotonic() - begun_s, 1),
        )

    def _grid(self) -> Grid:
        return Grid(self._open_store(), self._order.config.limits)

    def _take_back(self) -> None:
        """After Ctrl-C: the connections are closed, so each host is at it already."""
        begun = dict(self._at_work)

        def ask(target: Target) -> str:
            try:
                with connect(target, self._access) as connection:
                    Undoing(connection, begun[target]).back()
            except CogridError as error:
                return error.message
            return "what was begun is taken back"

        for target, answer in zip(begun, ask_all(tuple(begun), ask, 2 * BACK_S), strict=True):
            said = answer.message if isinstance(answer, HostError) else answer
            self._say(target.shown, f"interrupted; {said}")


def _unit_s(limits: Limits) -> float:
    """The most that one unit may take."""
    return LOOK_S + INSTALL_S + limits.drain_timeout_s + 2 * limits.start_timeout_s + 180


def _is_within(now: Plan, shown: Plan) -> bool:
    """Whether it is at most what the operator has agreed to: another unit of the same call may have
    done some of it, and how many tasks run there may change."""
    return (
        now.objections == shown.objections
        and now.acts <= shown.acts
        and (now.diff, now.variables, now.others) == (shown.diff, shown.variables, shown.others)
    )


def _failed(
    planned: HostInstall, step: str | None, error: CogridError, lines: tuple[str, ...] = ()
) -> HostInstall:
    return replace(
        planned,
        state=FAILED,
        step=step,
        error=error.message,
        hint=error.hint or None,
        journal=lines,
    )
