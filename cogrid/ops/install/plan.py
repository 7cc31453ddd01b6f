"""What is to be done on a host, decided from what it is. Nothing here touches anything."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from cogrid.model.host import Role, Scope
from cogrid.ops.install.facts import Login, Look, Running, Server
from cogrid.ops.unit.difference import changed_variables, difference
from cogrid.ops.unit.read import read
from cogrid.ops.unit.render import Rendered
from cogrid.ops.unit.seal import Origin, origin
from cogrid.ops.unit.settings import SERVICE_USER, UnitSettings
from cogrid.ops.unit.state import UnitState, parse_state
from cogrid.rules.counted import counted

CLOCK_OFF_S = 30.0
"""From here on a host's log is hard to lay beside another's; cogrid itself goes by Redis' clock."""
SPARE_BYTES = 16 << 20
"""Free space for units, logs and the worker's own files."""
DEMO = "demo"
"""The engine that needs none."""


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
class Wishes:
    """What the operator allows. upgrade: install what this side has, also over the same version.
    replace: workers that were found there. force: over what somebody edited."""

    upgrade: bool = False
    replace: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """cogrid on the host and what would come. there: the installation that units use, "" for none.
    coming: the one that would be installed, "" where there is no need. needed_bytes: for it."""

    there: str = ""
    coming: str = ""
    packages: int = 0
    packed_bytes: int = 0
    needed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the grid knows of the worker of that name. alive: its lease runs. host: where. polls:
    it has claimed lately. runs: tasks at work. instance: which process of that name."""

    alive: bool = False
    host: str = ""
    polls: bool = False
    runs: int = 0
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why it is not done, and what to do about it."""

    what: str
    cure: str


@dataclass(frozen=True, slots=True)
class Other:
    """A worker that is there already and is not this unit's. unit: "" for a process that was
    started by hand."""

    what: str
    unit: str = ""
    enabled: bool = False
    active: bool = False
    pid: int = 0
    started: str = ""


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


def no_systemd(login: Login, settings: UnitSettings) -> Objection | None:
    """Units are for systemd. On WSL and in containers systemctl may exist without it."""
    if login.systemd and login.init == "systemd":
        return None
    first = f"its first process is {login.init}" if login.init else "it is no Linux"
    command = {
        Role.WORKER: f"cogrid worker run --id {settings.id}",
        Role.COORDINATOR: "cogrid coordinator run",
        Role.REAPER: "cogrid reaper --daemon",
    }[settings.role]
    return Objection(
        f"there is no systemd as init ({first})",
        f"run this command under your own supervisor: {command}",
    )


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
    others = tuple(_others(settings, login, look)) if settings.role is Role.WORKER else ()
    changed = _changed(rendered, look, server)
    running = _is_up(parse_state(look.unit.state))
    return Plan(
        settings.unit_name,
        tuple(_steps(settings, rendered, look, delivery, seen, others, changed, running)),
        difference(rendered.unit_path, look.unit.text or "", rendered.unit_text),
        changed_variables(look.environment or "", rendered.environment_text),
        tuple(_notes(look, changed)),
        (
            *_about_host(settings, look, delivery),
            *_about_redis(look, server),
            *_about_worker(settings, login, look, seen),
            *_about_files(rendered, look, wishes),
            *_about_others(others, wishes),
        ),
        others,
        running,
    )


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
    if starts and seen.alive:
        runs = f", which runs {counted(seen.runs, 'task')}" if seen.runs else ""
        yield Todo(Act.DRAIN, f"drain {settings.id}{runs}")
    yield from (
        Todo(Act.REPLACE, f"stop and disable {other.unit}", other)
        if other.unit
        else Todo(Act.FREEZE, f"halt process {other.pid}", other)
        for other in others
    )
    if parse_state(look.unit.state).enabled != "enabled":
        yield Todo(Act.ENABLE, f"enable {unit}")
    if starts:
        yield Todo(Act.START, f"{'restart' if running else 'start'} {unit}")
        yield Todo(Act.ACTIVE, "wait until systemd says that it is active")
        yield Todo(Act.POLLED, f"wait until {_proof(settings)}")
    for other in others:
        if other.pid:
            yield Todo(Act.END, f"end process {other.pid}", other)


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


# What speaks against it.


def _about_host(settings: UnitSettings, look: Look, delivery: Delivery) -> Iterator[Objection]:
    if settings.scope is Scope.SYSTEM and look.account is None and settings.user != SERVICE_USER:
        yield Objection(
            f"there is no user {settings.user}",
            f"add it: useradd --system {shlex.quote(settings.user)}; or name another one: --user",
        )
    if settings.scope is Scope.USER and not look.lingers:
        yield Objection(
            "its units end with the last login, since lingering is off for that user",
            "switch it on there: sudo loginctl enable-linger USER",
        )
    if look.workdir:
        yield _about_workdir(settings, look)
    place = look.place
    if place.readonly:
        yield Objection(f"the file system at {place.path} is mounted read-only", "mount it rw")
    if delivery.coming and place.noexec:
        yield Objection(
            f"the file system at {place.path} is mounted noexec, so no program there can run",
            "mount it without noexec",
        )
    needed = delivery.needed_bytes + SPARE_BYTES
    if place.free_bytes < needed:
        yield Objection(
            f"the disk at {place.path} has {place.free_bytes / 1e6:.0f} MB free and"
            f" {needed / 1e6:.0f} MB are needed",
            "make room there",
        )


def _about_workdir(settings: UnitSettings, look: Look) -> Objection:
    path = settings.workdir
    if look.workdir == "relative":
        return Objection(
            f"the working directory {path} is not written in full",
            "begin it with / (systemd knows no ~), or leave --workdir out",
        )
    if look.workdir == "missing":
        return Objection(
            f"the working directory {path} does not exist there",
            "make it, mount it, or leave --workdir out: the unit needs none",
        )
    if look.workdir == "file":
        return Objection(f"the working directory {path} is no directory", "name another one")
    user = settings.user or "this user"
    return Objection(
        f"{user} may not enter or read the working directory {path}",
        f"give {user} the right, or leave --workdir out: the unit needs none",
    )


def _about_redis(look: Look, server: Server) -> Iterator[Objection]:
    if look.redis is None or not look.redis.fault:
        return
    name = f"[{server.host}]" if ":" in server.host else server.host
    place, said = f"{name}:{server.port}", look.redis.said
    match look.redis.fault:
        case "itself":
            yield means_itself(place)
        case "name":
            yield Objection(
                f"the name {server.host} of the Redis server has no address there ({said})",
                "give its address: --redis redis://ADDRESS:PORT",
            )
        case "tls":
            yield Objection(
                f"Redis at {place} cannot be trusted from there: {said}",
                "give the authority that signed it: redis.ca_file",
            )
        case "password":
            yield Objection(
                f"Redis at {place} refuses user and password ({said})",
                "set redis.password or COGRID_REDIS_PASSWORD, and the user if it has one",
            )
        case "network":
            yield Objection(
                f"Redis at {place} cannot be reached from there: {said}",
                "let it listen on an address of the network and open the port for this host",
            )
        case _:
            yield Objection(
                f"what listens at {place} does not answer like Redis ({said})",
                "give the right port: --redis redis://ADDRESS:PORT",
            )


def means_itself(place: str) -> Objection:
    """An address that is another machine's for each machine that uses it."""
    return Objection(
        f"the Redis URL names {place}, which on that host means the host itself",
        "give an address that it can reach: cogrid up --listen ADDRESS here, or"
        " --redis redis://ADDRESS:PORT",
    )


def _about_worker(
    settings: UnitSettings, login: Login, look: Look, seen: Seen
) -> Iterator[Objection]:
    if settings.role is not Role.WORKER:
        return
    there = seen.host.partition(".")[0].lower()
    if seen.alive and there != login.name.lower():
        yield Objection(
            f"a worker {settings.id} is alive on host {seen.host}",
            "choose another name with --id, or drain and stop that one first",
        )
    if not look.engine and settings.engine != DEMO:
        where = f"at {settings.engine}" if settings.engine else "on the usual ports"
        yield Objection(
            f"no engine answers there {where}",
            "start it there, or give its address as the host sees it: --engine http://HOST:PORT",
        )


def _about_files(rendered: Rendered, look: Look, wishes: Wishes) -> Iterator[Objection]:
    for path, there, wanted in (
        (rendered.unit_path, look.unit.text, rendered.unit_text),
        (rendered.environment_path, look.environment, rendered.environment_text),
    ):
        if there is None or there == wanted or wishes.force:
            continue
        if origin(there) is Origin.EDITED:
            yield Objection(
                f"{path} was edited by hand",
                "move the changes into a drop-in (systemctl edit), or lose them with --force",
            )
        elif origin(there) is Origin.FOREIGN:
            yield Objection(
                f"{path} is there and was not written by cogrid", "replace it with --force"
            )


def _about_others(others: tuple[Other, ...], wishes: Wishes) -> Iterator[Objection]:
    if others and not wishes.replace:
        yield Objection(
            f"a worker runs there already: {'; '.join(other.what for other in others)}",
            "have it replaced with --replace",
        )


# Workers that are there.


def _others(settings: UnitSettings, login: Login, look: Look) -> Iterator[Other]:
    for found in look.workers:
        if found.unit == settings.unit_name or _is_another(found, settings, login):
            continue
        if found.unit:
            state = parse_state(found.state)
            enabled, up = state.enabled == "enabled", _is_up(state)
            if enabled or up:
                yield Other(f"{found.unit} ({found.path})", found.unit, enabled, up)
        else:
            what = f"process {found.pid} of {found.user}, started by hand: {_shown(found.words)}"
            yield Other(what, pid=found.pid, started=found.started)


def _is_another(found: Running, settings: UnitSettings, login: Login) -> bool:
    """Whether it is a cogrid worker of another name, which may well run beside this one."""
    if found.unit:
        its = read(found.unit, found.text, scope=settings.scope)
        return its is not None and its.id not in ("", settings.id)
    words = found.words
    if "worker" not in words or "run" not in words:
        return False
    name = next((after for word, after in pairwise(words) if word == "--id"), "")
    return (name or login.name.lower()) != settings.id


def _shown(words: tuple[str, ...]) -> str:
    """The program and what it runs, without what follows: a password may be among it."""
    return shlex.join(words[:2])


def _is_up(state: UnitState) -> bool:
    """Whether it runs, or would run again in a moment."""
    return state.installed and state.active not in ("inactive", "failed")
