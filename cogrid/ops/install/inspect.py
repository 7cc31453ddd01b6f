"""A host is looked at, and what is to be done there is planned."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from packaging.version import Version

from cogrid import __version__
from cogrid.engine.address import engine_url
from cogrid.engine.find import USUAL_PORTS
from cogrid.errors import CogridError, HostError, UsageError
from cogrid.model.host import Host, Role, Scope
from cogrid.ops.delivery.bundle import Bundle
from cogrid.ops.delivery.gather import MissingWheelsError, gather
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.read_python import read_python
from cogrid.ops.delivery.refusal import DeliveryError
from cogrid.ops.delivery.stage import Installed, Staged, has, read_installed
from cogrid.ops.install.facts import Login, Look, Question, ask_login, ask_look
from cogrid.ops.install.given import Delivery, Seen
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.objections import DEMO, Objection, no_systemd
from cogrid.ops.install.order import (
    ROOT,
    Order,
    at_home,
    authorities_path,
    base_of,
    in_a_home,
    unit_settings,
)
from cogrid.ops.install.plan import Plan, plan, plan_back, refused
from cogrid.ops.unit.render import Rendered, render
from cogrid.ops.unit.settings import UnitSettings
from cogrid.remote.connection import Connection

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One host and what is to be done there. The rest is None where the plan is refused early.
    back: the installation that it goes back to, None where it does not."""

    host: Host
    shown: str
    plan: Plan
    login: Login
    settings: UnitSettings = field(repr=False)
    rendered: Rendered | None = field(default=None, repr=False)
    python: HostPython | None = None
    bundle: Bundle | None = field(default=None, repr=False)
    back: Staged | None = None
    seen: Seen = field(default_factory=Seen)
    authorities: str = field(default="", repr=False)

    @property
    def scope(self) -> Scope:
        """Whose unit it is."""
        return self.settings.scope


def inspect(connection: Connection, host: Host, order: Order, grid: Grid | None, tell: Tell) -> Job:
    """Look at it and plan; nothing is changed there. grid: None where its part is not to be asked.
    tell: gets a line before what may take long. HostError where it cannot be asked."""
    login = ask_login(connection)
    settings = unit_settings(host, login, order)
    job = Job(host, connection.target.shown, refused(settings), login, settings)
    if objection := no_systemd(login, settings) or _no_root(connection, settings, login):
        return replace(job, plan=refused(settings, objection))
    try:
        python = read_python(connection, host.python)
        installed = read_installed(connection, settings.scope, python)
        settings = replace(settings, has_home=in_a_home(python.path))
        rendered = _in_full(render(settings), login)
    except (DeliveryError, UsageError) as error:
        return replace(job, plan=refused(settings, _objection(error, job.shown)))
    look = ask_look(connection, python.path, _question(settings, rendered, login, order))
    seen = grid.seen(settings.id) if grid and settings.role is Role.WORKER else Seen()
    job = replace(
        job, settings=settings, rendered=rendered, python=python, seen=seen,
        authorities=order.authorities,
    )  # fmt: skip
    if order.wishes.rollback:
        return _planned_back(job, installed, look)
    return _planned(job, installed, look, order, tell)


def _planned_back(job: Job, installed: Installed, look: Look) -> Job:
    before, python = installed.before, job.python
    assert python is not None
    job = replace(job, plan=plan_back(job.settings, look, installed, job.seen))
    if before is None:
        return job
    return replace(job, back=Staged(job.scope, installed.base, before.name, python, fresh=False))


def _planned(job: Job, installed: Installed, look: Look, order: Order, tell: Tell) -> Job:
    """The wheels are only gathered where nothing else speaks against it."""
    assert job.rendered is not None
    assert job.python is not None
    there = installed.current if installed.works else ""
    needed = _needs(installed, order.wishes.upgrade)
    first = Delivery(there, coming=__version__ if needed else "")
    found = _plan(job, look, first, order)
    if not needed or found.objections:
        return replace(job, plan=found)
    try:
        bundle = gather(job.python, order.wheels, os.environ, tell)
    except MissingWheelsError as error:
        return replace(job, plan=refused(job.settings, _objection(error, job.shown)))
    if bundle.name == there:
        return replace(job, plan=_plan(job, look, Delivery(there), order))
    lies_there = has(installed, bundle)
    delivery = Delivery(
        there,
        bundle.name,
        len(bundle.wheels),
        0 if lies_there else bundle.packed_bytes,
        0 if lies_there else bundle.needed_bytes,
    )
    return replace(job, plan=_plan(job, look, delivery, order), bundle=bundle)


def _plan(job: Job, look: Look, delivery: Delivery, order: Order) -> Plan:
    assert job.rendered is not None
    return plan(
        job.settings, job.rendered, job.login, look, delivery, job.seen, order.wishes, order.server
    )


def _needs(installed: Installed, upgrade: bool) -> bool:
    """Whether cogrid is missing there, does not run, or is older than what is here."""
    if upgrade or not installed.works or not installed.version:
        return True
    return Version(installed.version) < Version(__version__)


def _no_root(connection: Connection, settings: UnitSettings, login: Login) -> Objection | None:
    """A unit of the system is root's to install."""
    if settings.scope is Scope.USER or login.uid == ROOT:
        return None
    try:
        connection.run("true", root=True)
    except HostError as error:
        return _objection(error, connection.target.shown)
    return None


def _objection(error: CogridError, host: str) -> Objection:
    """The host is named beside it anyway."""
    return Objection(error.message.removeprefix(f"{host}: "), error.hint)


def _in_full(rendered: Rendered, login: Login) -> Rendered:
    return replace(
        rendered,
        unit_path=at_home(rendered.unit_path, login),
        environment_path=at_home(rendered.environment_path, login),
    )


def _question(settings: UnitSettings, rendered: Rendered, login: Login, order: Order) -> Question:
    scope = settings.scope
    return Question(
        scope=scope,
        unit=settings.unit_name,
        unit_path=rendered.unit_path,
        environment_path=rendered.environment_path,
        authorities_path=authorities_path(scope, login),
        user=settings.user or login.user,
        workdir=settings.workdir,
        base=base_of(scope, login),
        engines=tuple(_engines(settings)),
        redis=order.server,
    )


def _engines(settings: UnitSettings) -> list[str]:
    if settings.role is not Role.WORKER or settings.engine == DEMO:
        return []
    if settings.engine:
        return [engine_url(settings.engine)]
    return [f"http://127.0.0.1:{port}" for port in USUAL_PORTS]
