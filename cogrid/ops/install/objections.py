"""What speaks against an installation, each with its cure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from cogrid.model.host import Role, Scope
from cogrid.ops.install.facts import Login, Look, Server
from cogrid.ops.install.given import Delivery, Seen, Wishes
from cogrid.ops.install.others import Other
from cogrid.ops.unit.render import Rendered
from cogrid.ops.unit.seal import Origin, origin
from cogrid.ops.unit.settings import SERVICE_USER, UnitSettings

SPARE_BYTES = 16 << 20
"""Free space for units, logs and the worker's own files."""
DEMO = "demo"
"""The engine that needs none."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why it is not done, and what to do about it."""

    what: str
    cure: str


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


def objections(
    settings: UnitSettings,
    rendered: Rendered,
    login: Login,
    look: Look,
    delivery: Delivery,
    seen: Seen,
    wishes: Wishes,
    server: Server,
    others: tuple[Other, ...],
) -> tuple[Objection, ...]:
    """All of them."""
    return (
        *_about_host(settings, login, look, delivery),
        *_about_redis(look, server),
        *_about_worker(settings, login, look, seen),
        *_about_files(rendered, look, wishes),
        *_about_others(others, wishes),
    )


def _about_host(
    settings: UnitSettings, login: Login, look: Look, delivery: Delivery
) -> Iterator[Objection]:
    if settings.scope is Scope.SYSTEM and look.account is None and settings.user != SERVICE_USER:
        yield Objection(
            f"there is no user {settings.user}",
            f"add it: useradd --system {shlex.quote(settings.user)}; or name another one: --user",
        )
    if settings.scope is Scope.USER and not look.lingers:
        yield Objection(
            "its units end with the last login, since lingering is off for that user",
            f"switch it on there: sudo loginctl enable-linger {shlex.quote(login.user)}",
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
            yield _means_itself(place)
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


def _means_itself(place: str) -> Objection:
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
