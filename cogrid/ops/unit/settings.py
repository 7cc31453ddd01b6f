"""What a unit is made from."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogrid.model.host import Role, Scope

PROGRAM = ("/opt/cogrid/current/bin/cogrid",)
"""Where a system's cogrid is: the link to its newest version."""
SERVICE_USER = "cogrid"
"""Whom a system's unit runs as unless told otherwise: a user without a home."""
RESTART_S = 10
SUFFIX = ".service"
UNIT_PLACES = {Scope.SYSTEM: "/etc/systemd/system", Scope.USER: "~/.config/systemd/user"}
ENVIRONMENT_PLACES = {Scope.SYSTEM: "/etc/cogrid", Scope.USER: "~/.config/cogrid"}


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """Everything that one unit and its environment file hold.

    unit: its name; "" for the usual one of the role. program: the words that start cogrid there,
    the first an absolute path. user: whom it runs as; a user's own manager runs everything as that
    user. workdir: where it runs, "" where it needs none. has_home: cogrid, its interpreter or its
    user lives in a home, also where no path shows it. restart_s: seconds between an end and the
    next start. id to models: of a worker; "", 0 and (): it finds out. listen: of a coordinator.
    redis_url to api_key: only in the environment file. environment: further variables of that file
    (name, value).
    """

    role: Role = Role.WORKER
    scope: Scope = Scope.SYSTEM
    unit: str = ""
    program: tuple[str, ...] = PROGRAM
    user: str = SERVICE_USER
    workdir: str = ""
    has_home: bool = False
    restart_s: int = RESTART_S
    id: str = ""
    pool: str = ""
    engine: str = ""
    slots: int = 0
    models: tuple[str, ...] = ()
    listen: str = ""
    prefix: str = ""
    redis_url: str = field(default="", repr=False)
    redis_username: str = ""
    redis_password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def unit_name(self) -> str:
        """The file's name: ``cogrid-worker@esxi.service``."""
        name = self.unit or usual_name(self.role, self.id)
        return name if name.endswith(SUFFIX) else f"{name}{SUFFIX}"

    @property
    def unit_path(self) -> str:
        """Where the unit stands; ``~`` is the home of the user who logs in."""
        return f"{UNIT_PLACES[self.scope]}/{self.unit_name}"

    @property
    def environment_path(self) -> str:
        """Where its environment file stands; ``~`` as above."""
        return f"{ENVIRONMENT_PLACES[self.scope]}/{self.unit_name.removesuffix(SUFFIX)}.env"


def usual_name(role: Role, worker: str = "") -> str:
    """A unit's name unless another was wanted. worker: a worker's id."""
    return f"cogrid-{role}@{worker}{SUFFIX}" if role is Role.WORKER else f"cogrid-{role}{SUFFIX}"
