"""Units are taken away from many hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cogrid.errors import CogridError, Exit, HostError, HostFault, UnreachableError
from cogrid.model.host import Host
from cogrid.ops.install.apply import NotDoneError
from cogrid.ops.install.fleet import AT_ONCE, FAILED, NOT_ASKED, NOTHING, PLANNED, REFUSED, Say
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.objections import Objection
from cogrid.ops.install.order import Order
from cogrid.ops.install.removal import STOP_S, Removal, carry_out, look
from cogrid.ops.operator import operator
from cogrid.remote.access import Access
from cogrid.remote.connection import connect
from cogrid.remote.fan_out import ask_all
from cogrid.remote.target import Target, parse_target
from cogrid.store.client import Store

LOOK_S = 120.0
REMOVED = "removed"
FINE = (PLANNED, NOTHING, REMOVED)


@dataclass(frozen=True, slots=True)
class HostUninstall:
    """One unit on one host. state: planned, nothing to do, removed, refused (nothing was touched,
    ``objections`` say why), failed (at ``step``, null where the time was over; it can be begun
    again), not asked. left: what
    stays there, and why."""

    host: str
    unit: str | None
    state: str
    steps: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    objections: tuple[Objection, ...] = ()
    step: str | None = None
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Uninstall:
    """dry_run: nothing was touched. by: who has done it, null in a dry run."""

    dry_run: bool
    by: str | None
    hosts: tuple[HostUninstall, ...]

    @property
    def exit_code(self) -> Exit:
        """5 where something was not done on a host, else 0."""
        return Exit.OK if all(host.state in FINE for host in self.hosts) else Exit.SOME_HOSTS


@dataclass(frozen=True, slots=True)
class Lost:
    """A host that could not be looked at."""

    shown: str
    error: CogridError


def look_at(
    hosts: Iterable[Host], order: Order, access: Access, open_store: Callable[[], Store]
) -> tuple[Removal | Lost, ...]:
    """What is to be removed from each; nothing is changed."""
    meant = tuple(hosts)
    by_target: dict[Target, list[Host]] = {}
    for host in meant:
        by_target.setdefault(parse_target(host.address), []).append(host)

    def ask(target: Target) -> tuple[Removal | Lost, ...]:
        limits = order.config.limits
        with connect(target, access) as connection, Grid(open_store(), limits) as grid:
            found: list[Removal | Lost] = []
            for host in by_target[target]:
                try:
                    found.append(look(connection, host, order, grid))
                except UnreachableError:
                    raise
                except CogridError as error:
                    found.append(Lost(target.shown, error))
            return tuple(found)

    answers = ask_all(tuple(by_target), ask, LOOK_S, AT_ONCE)
    return tuple(
        each
        for target, answer in zip(by_target, answers, strict=True)
        for each in (
            [Lost(target.shown, answer)] * len(by_target[target])
            if isinstance(answer, HostError)
            else answer
        )
    )


def planned(found: Iterable[Removal | Lost]) -> Uninstall:
    """A dry run, or what is shown before the question."""
    return Uninstall(True, None, tuple(_shown(each) for each in found))


def _shown(found: Removal | Lost) -> HostUninstall:
    if isinstance(found, Lost):
        error = found.error
        return HostUninstall(
            found.shown, None, NOT_ASKED, error=error.message, hint=error.hint or None
        )
    state = REFUSED if found.objections else PLANNED if found.steps else NOTHING
    return HostUninstall(found.shown, found.unit, state, found.steps, found.left, found.objections)


def uninstall(
    found: tuple[Removal | Lost, ...],
    order: Order,
    access: Access,
    open_store: Callable[[], Store],
    say: Say,
) -> Uninstall:
    """Do it on all hosts at once, one unit of a host after the other."""
    by, limits = operator(), order.config.limits
    results = [_shown(each) for each in found]
    by_target: dict[Target, list[int]] = {}
    for number, each in enumerate(found):
        if isinstance(each, Removal) and each.is_todo:
            by_target.setdefault(parse_target(each.host.address), []).append(number)

    def ask(target: Target) -> bool:
        with connect(target, access) as connection, Grid(open_store(), limits) as grid:
            for number in by_target[target]:
                removal, shown = found[number], results[number]
                assert isinstance(removal, Removal)
                event = f"uninstall-unit {removal.unit} on {removal.shown} by {by}"
                try:
                    grid.tell(event, removal.settings.id)
                    left = carry_out(
                        connection, removal, grid, lambda line: say(target.shown, line)
                    )
                    results[number] = replace(shown, state=REMOVED, left=left)
                except NotDoneError as error:
                    results[number] = _failed(shown, error.step, error)
                except UnreachableError as error:
                    results[number] = _failed(shown, "begin", error)
        return True

    longest = max(map(len, by_target.values()), default=0)
    a_unit_s = limits.drain_timeout_s + STOP_S + 3 * limits.lease_s + LOOK_S
    limit_s = -(-len(by_target) // AT_ONCE) * longest * a_unit_s
    for target, answer in zip(
        by_target, ask_all(tuple(by_target), ask, limit_s, AT_ONCE), strict=True
    ):
        if isinstance(answer, HostError):
            for number in by_target[target]:
                if results[number].state == PLANNED:
                    results[number] = _failed(results[number], _step_of(answer), answer)
    return Uninstall(False, by, tuple(results))


def _step_of(lost: HostError) -> str | None:
    """Where the time was over, it may have been at work on any step, or on none."""
    return None if lost.kind is HostFault.STOPPED else "connect"


def _failed(planned: HostUninstall, step: str | None, error: CogridError) -> HostUninstall:
    return replace(planned, state=FAILED, step=step, error=error.message, hint=error.hint or None)
