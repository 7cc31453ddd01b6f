"""What a machine has said of itself, before anybody judges it."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.host import Role, Scope
from cogrid.ops.journal import JournalLine
from cogrid.ops.unit.command import read_command
from cogrid.ops.unit.seal import Origin
from cogrid.ops.unit.state import UnitState


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system, by the place where it is mounted."""

    place: str
    size_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Stray:
    """A worker that no service started: it ends with the session that did."""

    pid: int
    user: str
    what: str


@dataclass(frozen=True, slots=True)
class EnvironmentFile:
    """mode: its rights, such as 0o600."""

    path: str
    mode: int
    owner: str


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """One of cogrid's units there, with its drop-ins applied.

    state: what systemd says of it. version: of the cogrid that it runs, "" where that
    did not say. argv: the words that it runs, its variables not yet
    put in. environment: ``NAME=value`` of the unit itself. files: its environment files and whether
    each may be missing. readable: whether this login may read the journal at all.
    """

    scope: Scope
    name: str
    state: UnitState
    text: str
    origin: Origin
    version: str = ""
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    files: tuple[tuple[str, bool], ...] = ()
    user: str = ""
    group: str = ""
    workdir: str = ""
    modes: tuple[EnvironmentFile, ...] = ()
    readable: bool = False
    journal: tuple[JournalLine, ...] = ()

    @property
    def role(self) -> Role | None:
        """None for a command that is not cogrid's own."""
        command = read_command(self.argv)
        return command.role if command else None

    @property
    def worker(self) -> str:
        """The id of the worker that it runs, "" where its command names none."""
        command = read_command(self.argv)
        return str(command.fields.get("id", "")) if command else ""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """login: whom we are there. root: whether we may act as root. clock: seconds since 1970 by its
    clock, when the questions began and when they ended. pythons: each that it has, as its version.
    programs: where cogrid is, whether or not a unit runs it. engines: units that look like engines.
    Numbers are 0 where it did not say."""

    login: str
    root: bool
    name: str
    system: str
    init: str
    clock: tuple[float, float]
    pythons: tuple[tuple[int, ...], ...] = ()
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    disks: tuple[Disk, ...] = ()
    gpu: bool = False
    programs: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    strays: tuple[Stray, ...] = ()
    units: tuple[UnitFacts, ...] = ()
