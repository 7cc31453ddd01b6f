"""What is to be done on a host, decided from what it is. Nothing here touches anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from cogrid.model.host import Role, Scope
from cogrid.ops.delivery.stage import Installed
from cogrid.ops.install.facts import Login, Look, Server
from cogrid.ops.install.given import Delivery, Seen, Wishes
from cogrid.ops.install.objections import Objection, objections
from cogrid.ops.install.others import Other, find_others, is_up
from cogrid.ops.unit.difference import changed_variables, difference
from cogrid.ops.unit.render import Rendered
from cogrid.ops.unit.settings import UnitSettings
from cogrid.ops.unit.state import parse_state
from cogrid.rules.counted import counted

CLOCK_OFF_S = 30.0
"""From here on a host's log is hard to lay beside another's; cogrid itself goes by Redis' clock."""


class Act(StrEnum):
    """A step, in the order in which they are done."""

    USER = "user"
    INSTALL = "install"
    AUTHORITIES = "authorities"
    ENVIRONMENT = "environment"
    UNIT = "unit"
    SWITCH = "switch"
    DRAIN = "drain"
    REPLACE = "replace"
    FREEZE = "freeze"
    ENABLE = "enable"
    START = "start"
    ACTIVE = "active"
    POLLED = "polled"
    END = "end"


@dataclass(frozen=True, slots=True)
class Todo:
    """One step, as it is shown. other: the worker that it is about, where it is not the unit's."""

    act: Act
    what: str
    other: Other | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done. steps: () where there is nothing to do. diff: of the unit. variables: of
    the environment file, by name (+ new, - gone, ~ another value). objections: where there are any,
    nothing is done. others: workers that would be replaced. running: the unit runs now."""

    unit: str
    steps: tuple[Todo, ...] = ()
    diff: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    objections: tuple[Objection, ...] = ()
    others: tuple[Other, ...] = ()
    running: bool = False

    @property
    def acts(self) -> frozenset[Act]:
        """The steps without their words."""
        return frozenset(step.act for step in self.steps)

    @property
    def is_todo(self) -> bool:
        """Whether something is to be done, and nothing speaks against it."""
        return bool(self.steps) and not self.objections


def refused(settings: UnitSettings, *objections: Objection) -> Plan:
    """A plan that ends before it has begun."""
    return Plan(settings.unit_name, objections=objections)


def plan(
    settings: UnitSettings,
    rendered: Rendered,
    login: Login,
    look: Look,
    delivery: Delivery,
    seen: Seen,
    wishes: Wishes,
    server: Server,
) -> Plan:
    """Everything that would be done, and everything that speaks against it."""
    others = tuple(find_others(settings, login, look)) if settings.role is Role.WORKER else ()
    changed = _changed(rendered, look, server)
    running = is_up(parse_state(look.unit.state))
    return Plan(
        settings.unit_name,
        tuple(_steps(settings, rendered, look, delivery, seen, others, changed, running)),
        difference(rendered.unit_path, look.unit.text or "", rendered.unit_text),
        changed_variables(look.environment or "", rendered.environment_text),
        tuple(_notes(look, changed)),
        objections(settings, rendered, login, look, delivery, seen, wishes, server, others),
        others,
        running,
    )


def plan_back(settings: UnitSettings, look: Look, installed: Installed, seen: Seen) -> Plan:
    """The way back to the cogrid that ran before; the unit and its settings stay as they are."""
    unit, before = settings.unit_name, installed.before
    if look.unit.text is None:
        what = f"{unit} is not there, so it ran nothing before"
        return refused(settings, Objection(what, "install it: without --rollback"))
    if before is None:
        what = f"there is no cogrid to go back to from {installed.current or 'none'}"
        cure = "--upgrade installs the one that runs here"
        return refused(settings, Objection(what, cure))
    running = is_up(parse_state(look.unit.state))
    back = Todo(Act.SWITCH, f"use cogrid {before.name} again (was {installed.current})")
    steps = (back, *_drain(settings, seen), *_start(settings, running))
    return Plan(unit, steps, running=running)


def _steps(
    settings: UnitSettings,
    rendered: Rendered,
    look: Look,
    delivery: Delivery,
    seen: Seen,
    others: tuple[Other, ...],
    changed: frozenset[Act],
    running: bool,
) -> Iterator[Todo]:
    unit = settings.unit_name
    if settings.scope is Scope.SYSTEM and look.account is None:
        yield Todo(Act.USER, f"add the system user {settings.user}")
    if delivery.coming:
        megabytes = delivery.packed_bytes / 1e6
        packages = counted(delivery.packages, "package")
        yield Todo(
            Act.INSTALL, f"install cogrid {delivery.coming} ({packages}, {megabytes:.1f} MB)"
        )
    if Act.AUTHORITIES in changed:
        yield Todo(Act.AUTHORITIES, "write the authorities that Redis is checked against")
    if Act.ENVIRONMENT in changed:
        yield Todo(Act.ENVIRONMENT, f"write {rendered.environment_path} (0600)")
    if Act.UNIT in changed:
        new = look.unit.text is None
        what = (
            f"write {rendered.unit_path} (--print shows it)"
            if new
            else f"change {rendered.unit_path}"
        )
        yield Todo(Act.UNIT, what)
    if delivery.coming:
        was = f" (was {delivery.there})" if delivery.there else ""
        yield Todo(Act.SWITCH, f"use cogrid {delivery.coming}{was}")
    silent = settings.role is Role.WORKER and not seen.polls
    starts = bool(changed or delivery.coming or others or not running or silent)
    if starts:
        yield from _drain(settings, seen)
    yield from (
        Todo(Act.REPLACE, f"stop and disable {other.unit}", other)
        if other.unit
        else Todo(Act.FREEZE, f"halt process {other.pid}", other)
        for other in others
    )
    if parse_state(look.unit.state).enabled != "enabled":
        yield Todo(Act.ENABLE, f"enable {unit}")
    if starts:
        yield from _start(settings, running)
    for other in others:
        if other.pid:
            yield Todo(Act.END, f"end process {other.pid}", other)


def _drain(settings: UnitSettings, seen: Seen) -> Iterator[Todo]:
    if seen.alive:
        runs = f", which runs {counted(seen.runs, 'task')}" if seen.runs else ""
        yield Todo(Act.DRAIN, f"drain {settings.id}{runs}")


def _start(settings: UnitSettings, running: bool) -> Iterator[Todo]:
    yield Todo(Act.START, f"{'restart' if running else 'start'} {settings.unit_name}")
    yield Todo(Act.ACTIVE, "wait until systemd says that it is active")
    yield Todo(Act.POLLED, f"wait until {_proof(settings)}")


def _proof(settings: UnitSettings) -> str:
    return {
        Role.WORKER: f"the grid has seen {settings.id} poll",
        Role.COORDINATOR: "it answers there",
        Role.REAPER: "a pass has begun",
    }[settings.role]


def _changed(rendered: Rendered, look: Look, server: Server) -> frozenset[Act]:
    """Files that are not as they are to be."""
    files = (
        (Act.ENVIRONMENT, look.environment, rendered.environment_text),
        (Act.UNIT, look.unit.text, rendered.unit_text),
        *([(Act.AUTHORITIES, look.authorities, server.authorities)] if server.authorities else []),
    )
    return frozenset(act for act, there, wanted in files if there != wanted)


def _notes(look: Look, changed: frozenset[Act]) -> Iterator[str]:
    if abs(look.off_s) > CLOCK_OFF_S:
        side = "ahead" if look.off_s > 0 else "behind"
        yield f"its clock is {abs(look.off_s):.0f} s {side}: its log will mislead"
    drop_ins = parse_state(look.unit.state).drop_ins
    if drop_ins and changed:
        yield f"stays as it is: {', '.join(drop_ins)}"
