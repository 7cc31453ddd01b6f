"""A unit and its environment file, made from settings and the template of the role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources

from cogrid.errors import UsageError
from cogrid.model.host import Role, Scope
from cogrid.ops.unit.check import problems
from cogrid.ops.unit.command import words
from cogrid.ops.unit.environment import environment_text
from cogrid.ops.unit.file import Entry, UnitFile, parse_unit
from cogrid.ops.unit.quoting import command_line, raw
from cogrid.ops.unit.seal import sealed
from cogrid.ops.unit.settings import SERVICE_USER, UnitSettings
from cogrid.ops.unit.variables import variables

HOMES = ("/home/", "/root/", "/run/user/")
"""What ProtectHome= takes away."""
READ_ONLY = "read-only"
OF_THE_SYSTEM = frozenset(
    {
        "Wants", "After", "User", "StateDirectory", "CapabilityBoundingSet", "AmbientCapabilities",
        "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateMounts", "PrivateDevices",
        "DevicePolicy", "ProtectClock", "ProtectHostname", "ProtectKernelLogs",
        "ProtectKernelModules", "ProtectKernelTunables", "ProtectControlGroups", "ProtectProc",
    }
)  # fmt: skip
"""Lines that a user's own manager cannot carry out, or would misread: it may neither mount nor give
up rights that it has not, its units cannot wait for the system's, and each runs as that user."""
STATE_VARIABLE = "COGRID_WORKER_STATE_DIR"
"""Goes with StateDirectory=; a user's units keep their state where that user's commands do."""

Change = Callable[[Entry], tuple[Entry, ...]]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The two files. Paths begin with ``~`` in the scope of a user. The environment file holds the
    secrets: it is written with mode 0600 before it has any content."""

    unit_name: str
    unit_path: str
    unit_text: str
    environment_path: str
    environment_text: str = field(repr=False)


def template(role: Role) -> str:
    """The unit that is shipped for the role, which a host could use as it is."""
    name = f"cogrid-{role}{'@' if role is Role.WORKER else ''}.service"
    return (resources.files("cogrid") / "systemd" / name).read_text("utf-8")


def render(settings: UnitSettings) -> Rendered:
    """Both files. UsageError with everything that no unit can be made of."""
    if wrong := problems(settings):
        raise UsageError("\n".join(wrong), "nothing was written")
    return Rendered(
        settings.unit_name,
        settings.unit_path,
        sealed(_unit(settings).text),
        settings.environment_path,
        sealed(
            f"# Read by {settings.unit_name}. It holds secrets: for its owner's eyes only.\n"
            + environment_text(variables(settings))
        ),
    )


def needs_home(settings: UnitSettings) -> bool:
    """Whether the unit must see homes: something that it runs is in one, or the disk of its user's
    models, which the worker tells the free space of."""
    paths = (*settings.program, f"{settings.workdir}/")
    in_home = any(path.startswith(HOMES) for path in paths)
    return settings.has_home or in_home or settings.user not in (SERVICE_USER, "root")


def _unit(settings: UnitSettings) -> UnitFile:
    unit = parse_unit(template(settings.role))
    unit = unit.mapped("Unit", _set("Description", _description(settings)))
    for change in (
        _set("ExecStart", command_line(words(settings))),
        _set("EnvironmentFile", _environment_file(settings)),
        _set("RestartSec", str(settings.restart_s)),
        _set("User", raw(settings.user)),
        _set_home(settings),
        _instance(settings),
        _with_workdir(settings),
    ):
        unit = unit.mapped("Service", change)
    if settings.scope is Scope.USER:
        unit = unit.mapped("Unit", _not_of_the_system).mapped("Service", _not_of_the_system)
        unit = unit.mapped("Install", _set("WantedBy", "default.target"))
    first, *rest = unit.sections
    return replace(unit, sections=(replace(first, above=_head(settings)), *rest))


def _head(settings: UnitSettings) -> tuple[str, ...]:
    edit = "systemctl edit" if settings.scope is Scope.SYSTEM else "systemctl --user edit"
    name = _description(settings).removeprefix("cogrid ")
    return (
        f"# The {name}. Written by cogrid, which will not write over changes made here:",
        f"# they belong into a file beside it ({edit} {settings.unit_name}).",
        "",
    )


def _description(settings: UnitSettings) -> str:
    return f"cogrid {settings.role} {settings.id if settings.role is Role.WORKER else ''}".strip()


def _environment_file(settings: UnitSettings) -> str:
    path = raw(settings.environment_path)
    return f"%h{path.removeprefix('~')}" if path.startswith("~") else path


def _set(key: str, value: str) -> Change:
    return lambda entry: (replace(entry, value=value) if entry.key == key else entry,)


def _set_home(settings: UnitSettings) -> Change:
    def change(entry: Entry) -> tuple[Entry, ...]:
        if entry.key != "ProtectHome" or not needs_home(settings):
            return (entry,)
        why = "# Something that it runs, or its user, is at home there; it writes into none."
        return (Entry(entry.key, READ_ONLY, (why,)),)

    return change


def _instance(settings: UnitSettings) -> Change:
    """The template's instance is the worker, whatever name the unit has."""
    return lambda entry: (
        replace(entry, value=entry.value.replace("worker-%i", f"worker-{settings.id}")),
    )


def _with_workdir(settings: UnitSettings) -> Change:
    def change(entry: Entry) -> tuple[Entry, ...]:
        if entry.key != "User" or not settings.workdir:
            return (entry,)
        return (entry, Entry("WorkingDirectory", raw(settings.workdir)))

    return change


def _not_of_the_system(entry: Entry) -> tuple[Entry, ...]:
    goes = entry.key in OF_THE_SYSTEM or entry.value.startswith(f"{STATE_VARIABLE}=")
    return () if goes else (entry,)
