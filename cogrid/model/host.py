"""A machine of the fleet, as the operator names it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a unit runs there."""

    WORKER = "worker"
    COORDINATOR = "coordinator"
    REAPER = "reaper"


class Scope(StrEnum):
    """Whose manager runs it: the machine's, or the one of the user who logs in."""

    SYSTEM = "system"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Host:
    """A ``[[host]]`` table, or a ``--host`` of the command line.

    address: ``user@host:port``, or an alias of the SSH configuration. "", 0 and () are found out:
    id from the host's short name, pool, engine and slots by the worker at its start, models: all.
    user: whom the unit runs as. workdir: where it runs; "": it needs none. python: the interpreter
    to install into; "": the machine's own, else the newest there.
    """

    address: str
    id: str = ""
    pool: str = ""
    engine: str = ""
    models: tuple[str, ...] = ()
    slots: int = 0
    role: str = Role.WORKER
    scope: str = Scope.SYSTEM
    user: str = ""
    workdir: str = ""
    python: str = ""
