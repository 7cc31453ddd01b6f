"""What an installation knows of a host before it touches anything."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from importlib import resources

import msgspec

from cogrid.errors import CogridError, HostError, HostFault
from cogrid.model.host import Scope
from cogrid.ops.unit.state import SHOW
from cogrid.remote.connection import Connection

LOOK_S = 60.0
"""For the whole look: it waits for the server, each place of an engine, and systemctl."""


@dataclass(frozen=True, slots=True)
class Login:
    """Whom and what the SSH login is. name: the host's short name. init: the name of its first
    process, "" where it does not tell. systemd: it runs the machine. data_home: the directory of
    this user's data."""

    user: str
    uid: int
    home: str
    name: str
    init: str
    systemd: bool
    data_home: str


@dataclass(frozen=True, slots=True)
class Server:
    """The Redis server as the host is to use it."""

    host: str
    port: int
    tls: bool = False
    authorities: str = ""
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What the look is told. base: where cogrid is installed. engines: where to look for one, ()
    where none is needed. show: words for systemctl that have it tell of a unit."""

    scope: str
    unit: str
    unit_path: str
    environment_path: str
    authorities_path: str
    user: str
    workdir: str
    base: str
    engines: tuple[str, ...] = ()
    redis: Server | None = None
    show: tuple[str, ...] = SHOW


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the server answers the host. fault: "", or name, itself, network, tls, password,
    server."""

    fault: str
    said: str


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the host."""

    uid: int
    home: str


@dataclass(frozen=True, slots=True)
class Place:
    """The file system that holds the installation, or would. path: the part of it that exists."""

    free_bytes: int
    noexec: bool
    readonly: bool
    path: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit. text: None where there is no file. state: as ``systemctl show`` says it."""

    text: str | None
    state: str


@dataclass(frozen=True, slots=True)
class Running:
    """A worker that was found: by its unit, or by its process where none has it. started: in ticks
    since boot. words, command: what runs; they may hold a secret."""

    unit: str = ""
    path: str = ""
    command: str = field(default="", repr=False)
    text: str = field(default="", repr=False)
    state: str = ""
    pid: int = 0
    started: str = ""
    user: str = ""
    words: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Look:
    """What ``look`` says. engine: the address that answered, "" for none. account: None where the
    unit's user does not exist. workdir: "", or relative, missing, file, closed. environment,
    authorities: the file with the secrets and that with the server's authorities, None where there
    is none. off_s: how far the host's clock is ahead."""

    clock_ms: int
    redis: Reach | None
    engine: str
    account: Account | None
    workdir: str
    place: Place
    lingers: bool
    unit: Unit
    environment: str | None = field(repr=False)
    authorities: str | None
    workers: tuple[Running, ...]
    off_s: float = 0.0


def ask_login(connection: Connection) -> Login:
    """The first question, which every host can answer."""
    script = (
        'id -un; id -u; echo "$HOME"; uname -n; echo "${XDG_DATA_HOME:-$HOME/.local/share}"; '
        "cat /proc/1/comm 2>/dev/null || echo; [ ! -d /run/systemd/system ] || echo systemd"
    )
    lines = [*connection.run(script).text.splitlines(), *("",) * 7]
    user, uid, home, name, data_home, init, systemd, *_ = lines
    if not uid.isdecimal():
        raise HostError(
            f"{connection.target.shown} does not answer like a Unix system",
            host=connection.target.name,
            kind=HostFault.SHELL,
        )
    return Login(
        user, int(uid), home, name.partition(".")[0], init, systemd == "systemd", data_home
    )


def ask_look(connection: Connection, python: str, question: Question) -> Look:
    """All the rest, by that Python. For a unit of the system as root, which sees all there is."""
    program = resources.files("cogrid.ops.install").joinpath("look.py").read_text("utf-8")
    asked_at_s = time.time()
    done = connection.run(
        'exec "$1" -I -S -c "$2"',
        python,
        program,
        stdin=msgspec.json.encode(asdict(question)),
        timeout_s=LOOK_S,
        root=question.scope == Scope.SYSTEM,
    )
    if done.code:
        last = done.err.decode(errors="replace").strip().rpartition("\n")[2]
        raise CogridError(f"{connection.target.shown}: the look at it failed: {last}")
    look = msgspec.json.decode(done.out, type=Look)
    middle_ms = (asked_at_s + time.time()) * 500
    return replace(look, off_s=(look.clock_ms - middle_ms) / 1000)
