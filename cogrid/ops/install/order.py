"""What is ordered for all hosts alike, and what a unit's settings are on one of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from cogrid.config import Config
from cogrid.config.keys import variable
from cogrid.errors import UsageError
from cogrid.model.host import Host, Role, Scope
from cogrid.model.limits import Limits
from cogrid.model.names import host_name
from cogrid.ops.delivery.stage import SYSTEM
from cogrid.ops.install.facts import Login, Server
from cogrid.ops.install.given import Wishes
from cogrid.ops.unit.render import HOMES
from cogrid.ops.unit.settings import ENVIRONMENT_PLACES, RESTART_S, SERVICE_USER, UnitSettings
from cogrid.store.address import Address, read_authorities

ROOT = 0


@dataclass(frozen=True, slots=True)
class Order:
    """redis: the server that this side uses, reachable for others. authorities: PEM text of those
    that it is checked against, "" for a host's own. unit: a name for it, "" for the usual one.
    wheels: where to take them from, None: the package index. config: of this side, for what all
    daemons of a grid must agree on."""

    redis: Address
    config: Config = field(repr=False)
    wishes: Wishes = field(default_factory=Wishes)
    unit: str = ""
    restart_s: int = RESTART_S
    wheels: Path | None = None
    authorities: str = ""

    @property
    def server(self) -> Server:
        """The same as a host is to try it."""
        redis = self.redis
        return Server(
            redis.host,
            redis.port,
            redis.tls,
            self.authorities,
            redis.username or "",
            redis.password or "",
        )


def unit_settings(host: Host, login: Login, order: Order) -> UnitSettings:
    """What the host's unit is made from. UsageError where its name can be no worker's."""
    scope, role = Scope(host.scope), Role(host.role)
    worker = role is Role.WORKER
    name = (host.id or host_name(login.name)) if worker else ""
    if worker and not name:
        raise UsageError(
            f"the host name {login.name!r} is no name for a worker", "give one with --id"
        )
    config = order.config
    return UnitSettings(
        role=role,
        scope=scope,
        unit=order.unit,
        program=(f"{base_of(scope, login)}/current/bin/cogrid",),
        user=host.user or _usual_user(login) if scope is Scope.SYSTEM else "",
        workdir=host.workdir,
        restart_s=order.restart_s,
        id=name,
        pool=host.pool if worker else "",
        engine=host.engine if worker else "",
        slots=host.slots if worker else 0,
        models=host.models if worker else (),
        listen=config.coordinator.listen if role is Role.COORDINATOR else "",
        prefix=config.redis.prefix,
        redis_url=order.redis.shown,
        redis_username=order.redis.username or "",
        redis_password=order.redis.password or "",
        environment=tuple(_environment(role, scope, login, order)),
    )


def base_of(scope: Scope, login: Login) -> str:
    """Where cogrid is installed there."""
    return SYSTEM if scope is Scope.SYSTEM else f"{login.data_home}/cogrid"


def state_directory(settings: UnitSettings, login: Login) -> str:
    """What its unit, or in a user's scope its process, makes to keep things in."""
    if settings.scope is Scope.USER:
        return f"{login.home}/.local/state/cogrid"
    return f"/var/lib/cogrid/worker-{settings.id}" if settings.id else "/var/lib/cogrid"


def at_home(path: str, login: Login) -> str:
    """A path that may begin with ``~``, in full."""
    return login.home + path[1:] if path.startswith("~/") else path


def authorities_path(scope: Scope, login: Login) -> str:
    """Where the PEM file stands that the server is checked against."""
    return at_home(f"{ENVIRONMENT_PLACES[scope]}/redis-ca.pem", login)


def in_a_home(path: str) -> bool:
    """Whether ProtectHome= would hide it."""
    return path.startswith(HOMES)


def _usual_user(login: Login) -> str:
    return SERVICE_USER if login.uid == ROOT else login.user


def _environment(role: Role, scope: Scope, login: Login, order: Order) -> list[tuple[str, str]]:
    """What all daemons of a grid must agree on and is not at its default here; of a worker also the
    key for its engine."""
    config = order.config
    usual = Limits().scaled(config.time_scale)
    found = [
        (variable(f"limits.{each.name}"), str(getattr(config.limits, each.name)))
        for each in fields(Limits)
        if config.time_scale == 1 and getattr(config.limits, each.name) != getattr(usual, each.name)
    ]
    if config.time_scale != 1:
        found.append(("COGRID_TIME_SCALE", f"{config.time_scale:g}"))
    if role is Role.WORKER and config.worker.engine_key:
        found.append((variable("worker.engine_key"), config.worker.engine_key))
    if order.authorities:
        found.append((variable("redis.ca_file"), authorities_path(scope, login)))
    return found


def authorities(config: Config) -> str:
    """The PEM text that the configuration names, "" where it names none. UsageError."""
    return read_authorities(config.redis.ca_file)
