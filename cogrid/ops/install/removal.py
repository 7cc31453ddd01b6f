"""A unit is taken away from a host: drained, stopped, disabled; what is cogrid's is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cogrid.errors import CogridError, HostError
from cogrid.model.host import Host, Role, Scope
from cogrid.ops.delivery.read_python import read_python
from cogrid.ops.delivery.stage import remove
from cogrid.ops.install.apply import NotDoneError
from cogrid.ops.install.facts import Login, ask_login
from cogrid.ops.install.given import Seen
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.objections import Objection, no_systemd
from cogrid.ops.install.order import (
    Order,
    at_home,
    authorities_path,
    base_of,
    state_directory,
    unit_settings,
)
from cogrid.ops.unit.seal import Origin, origin
from cogrid.ops.unit.settings import SERVICE_USER, UnitSettings
from cogrid.ops.unit.state import SHOW, UnitState, parse_state
from cogrid.remote.connection import Connection
from cogrid.rules.counted import counted

STOP_S = 300.0
"""A unit has 150 s to stop, one with a longer drain asks for more."""

_LOOK = """\
unit=$1 environment=$2 base=$3 authorities=$4
shift 4
cat "$unit" 2>/dev/null
printf '\\0'
[ ! -e "$environment" ] || echo "$environment"
printf '\\0'
[ ! -e "$unit.d" ] || echo "$unit.d"
printf '\\0'
grep -lF "$base/current/" "${unit%/*}"/*.service 2>/dev/null | grep -vxF "$unit"
printf '\\0'
[ ! -e "$base/current" ] || echo "$base"
printf '\\0'
[ ! -e "$authorities" ] || echo "$authorities"
printf '\\0'
for each; do [ ! -e "$each" ] || echo "$each"; done
printf '\\0'
"""
_REMOVE = """\
scope=$1 unit=$2 path=$3 environment=$4
shift 4
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
if [ -e "$path" ]; then
    systemctl "$scope" disable --now "$unit" 2>&1 || exit 1
fi
rm -rf "$path" "$environment" "$@" || exit 1
rmdir "${environment%/*}" 2>/dev/null
[ $# -eq 0 ] || rmdir "${1%/*}" 2>/dev/null
systemctl "$scope" daemon-reload
systemctl "$scope" reset-failed "$unit" 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class Removal:
    """What would be removed. steps: in order, as an operator reads them; () where there is nothing.
    objections: where there are any, nothing is done. left: what stays, and why. everything: cogrid
    itself goes too, since no other unit there uses it. beside: what goes with the unit and its
    environment file."""

    host: Host
    shown: str
    unit: str
    objections: tuple[Objection, ...] = ()
    steps: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    everything: bool = False
    beside: tuple[str, ...] = ()
    known: bool = False
    seen: Seen = field(default_factory=Seen)
    login: Login | None = None
    settings: UnitSettings = field(default_factory=UnitSettings, repr=False)

    @property
    def is_todo(self) -> bool:
        """Whether something is to be done, and nothing speaks against it."""
        return bool(self.steps) and not self.objections


@dataclass(frozen=True, slots=True)
class There:
    """What of it stands there. others: units that use the same cogrid. base: where that is, ""
    where there is none. authorities: the file that Redis is checked against, "" where there is
    none; all units of the host use it. kept: what the worker has kept for its next start."""

    text: str
    environment: str
    drop_ins: str
    others: tuple[str, ...]
    base: str
    state: UnitState
    authorities: str = ""
    kept: tuple[str, ...] = ()


def look(connection: Connection, host: Host, order: Order, grid: Grid) -> Removal:
    """What is to be removed; nothing is changed. HostError where the host cannot be asked."""
    login = ask_login(connection)
    settings = unit_settings(host, login, order)
    shown, unit = connection.target.shown, settings.unit_name
    if objection := no_systemd(login, settings):
        return Removal(host, shown, unit, (objection,))
    there = _there(connection, settings, login)
    worker = settings.role is Role.WORKER
    return plan_removal(
        host, shown, settings, login, there,
        grid.seen(settings.id) if worker else Seen(),
        known=worker and grid.knows(settings.id),
        force=order.wishes.force,
    )  # fmt: skip


def plan_removal(
    host: Host,
    shown: str,
    settings: UnitSettings,
    login: Login,
    there: There,
    seen: Seen,
    *,
    known: bool,
    force: bool,
) -> Removal:
    """Decided from what stands there. known: the grid has a worker of that name."""
    everything = bool(there.base) and not there.others
    here = seen.host.partition(".")[0].lower() == login.name.lower()
    ours = seen if here else Seen()
    beside = (*there.kept, *([there.authorities] if everything and there.authorities else []))
    return Removal(
        host,
        shown,
        settings.unit_name,
        tuple(_objections(settings, there, force)),
        tuple(
            _steps(settings, there, ours, known and (here or not seen.alive), everything, beside)
        ),
        tuple(_left(settings, there, everything)),
        everything,
        beside,
        known and (here or not seen.alive),
        ours,
        login,
        settings,
    )


def _steps(
    settings: UnitSettings,
    there: There,
    seen: Seen,
    known: bool,
    everything: bool,
    beside: tuple[str, ...],
) -> Iterator[str]:
    if seen.alive and not (there.text or there.environment):
        return  # it is no unit's
    if seen.alive:
        runs = f", which runs {counted(seen.runs, 'task')}" if seen.runs else ""
        yield f"drain {settings.id}{runs}"
    if there.text:
        yield f"stop and disable {settings.unit_name}"
    for path in filter(None, (there.text and settings.unit_path, there.environment, *beside)):
        yield f"remove {path}"
    if everything:
        yield f"remove cogrid itself from {there.base}"
    if known:
        yield f"strike {settings.id} off the grid"


def _objections(settings: UnitSettings, there: There, force: bool) -> Iterator[Objection]:
    if not there.text or force:
        return
    match origin(there.text):
        case Origin.FOREIGN:
            yield Objection(
                f"{settings.unit_path} was not written by cogrid", "remove it with --force"
            )
        case Origin.EDITED:
            yield Objection(
                f"{settings.unit_path} was edited by hand", "remove it all the same with --force"
            )
        case Origin.INSTALLED:
            return


def _left(settings: UnitSettings, there: There, everything: bool) -> Iterator[str]:
    if there.drop_ins:
        yield f"{there.drop_ins}: not cogrid's"
    if there.base and not everything:
        yield f"{there.base}: used by {', '.join(each.rpartition('/')[2] for each in there.others)}"
    if settings.user == SERVICE_USER and settings.scope is Scope.SYSTEM and everything:
        yield f"the user {SERVICE_USER}: files of it may be anywhere"


def _there(connection: Connection, settings: UnitSettings, login: Login) -> There:
    root = settings.scope is Scope.SYSTEM
    unit_path, environment_path = _paths(settings, login)
    base = base_of(settings.scope, login)
    said = connection.run(
        _LOOK, unit_path, environment_path, base, authorities_path(settings.scope, login),
        *_kept_by(settings, login), root=root,
    )  # fmt: skip
    parts = [*said.out.decode(errors="replace").split("\0"), *("",) * 7]
    text, environment, drop_ins, others, base, authorities, kept, *_ = parts
    state = connection.run(
        'XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}" exec systemctl "$@"',
        "--system" if root else "--user", *SHOW, settings.unit_name, root=root,
    )  # fmt: skip
    return There(
        text,
        environment.strip(),
        drop_ins.strip(),
        tuple(others.split()),
        base.strip(),
        parse_state(state.text),
        authorities.strip(),
        tuple(kept.splitlines()),
    )


def _paths(settings: UnitSettings, login: Login) -> tuple[str, str]:
    return at_home(settings.unit_path, login), at_home(settings.environment_path, login)


def carry_out(
    connection: Connection, removal: Removal, grid: Grid, tell: Callable[[str], None]
) -> tuple[str, ...]:
    """Do it; what was left there, and why. Interrupted, it can be begun again: each part is done
    where it is not done yet. NotDoneError names the step."""
    settings, login = removal.settings, removal.login
    assert login is not None
    left = list(removal.left)
    if removal.seen.alive:
        tell(f"drain {settings.id}")
        _named("drain", lambda: grid.drained(settings.id, lambda: None))
    tell(f"stop and remove {removal.unit}")
    _named("remove", lambda: _remove(connection, removal, settings, login))
    if removal.everything:
        tell("remove cogrid itself")
        left += _remove_cogrid(connection, removal)
    if removal.known:
        tell(f"strike {settings.id} off the grid, once its lease has run out")
        _named("forget", lambda: grid.strike_off(settings.id))
    return tuple(left)


def _named(step: str, do: Callable[[], object]) -> None:
    try:
        do()
    except HostError as error:
        raise NotDoneError(step, error.message, error.hint or "run it again") from error
    except CogridError as error:
        raise NotDoneError(step, error.message, error.hint) from error


def _remove(connection: Connection, removal: Removal, settings: UnitSettings, login: Login) -> None:
    root = settings.scope is Scope.SYSTEM
    done = connection.run(
        _REMOVE,
        "--system" if root else "--user",
        settings.unit_name,
        *_paths(settings, login),
        *removal.beside,
        timeout_s=STOP_S,
        root=root,
    )
    if done.code:
        said = (done.text or done.err.decode(errors="replace").strip()).splitlines()
        raise CogridError(said[-1] if said else f"it ended with code {done.code}")


def _kept_by(settings: UnitSettings, login: Login) -> tuple[str, ...]:
    """What the worker has kept for its next start."""
    if settings.role is not Role.WORKER:
        return ()
    place = state_directory(settings, login)
    if settings.scope is Scope.SYSTEM:
        return (place,)
    return tuple(f"{place}/worker-{settings.id}.{end}" for end in ("lock", "models"))


def _remove_cogrid(connection: Connection, removal: Removal) -> tuple[str, ...]:
    """What is left of it: a process that still runs it keeps it there."""
    try:
        python = read_python(connection, removal.host.python)
        removed = remove(connection, removal.settings.scope, python)
    except CogridError as error:
        return (f"cogrid itself: {error.message}",)
    kept = [f"cogrid {name}: a process still runs it" for name in removed.kept]
    return (*kept, *(f"{name}, beside cogrid: not cogrid's" for name in removed.left))
