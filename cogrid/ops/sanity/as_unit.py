"""A command run on a host as one of its units would run it: same user, same environment, same
directory, the unit's drop-ins included; without touching the unit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cogrid.model.host import Scope
from cogrid.ops.sanity.facts import HostFacts, UnitFacts
from cogrid.remote.connection import Connection
from cogrid.remote.session import Result

GRACE_S = 8.0
"""For Python to start, before the clock of what it runs begins; then it is cut."""
KILL_S = 2
"""Between asking it to end and ending it."""
SSH_S = 15.0
"""For everything around it."""

_AS_UNIT = """\
# a program, run as its unit runs it
as_root=
[ "$1" = user ] || [ "$(id -u)" = 0 ] || as_root='sudo -n'
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
shift
exec $as_root systemd-run "$@"
"""
_AS_LOGIN = "# a program, run as this login\n"
"""Messages name a script by its first line, where no setting may stand: it may be a secret."""
_CUT = """\
limit=$1
shift
export PYTHONUNBUFFERED=1
command -v timeout >/dev/null 2>&1 && set -- timeout -k %d "$limit" "$@"
"$@" </dev/null%s
printf '\\nEXIT:%%s\\n' "$?"
"""
"""Read from stdin by the shell that the unit's user runs; its own exit code is nobody's."""
_EXIT = "\nEXIT:"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did. code: its own; where it could not even be started, systemd's (217: no
    such user). told: it came to its end by itself or by the limit. as_unit: it ran as the unit
    would; else as whom we log in, with the settings of this side."""

    code: int
    out: str
    err: str
    told: bool
    as_unit: bool


Hear = Callable[[str], None]


def run_as_unit(
    there: Connection,
    facts: HostFacts,
    unit: UnitFacts,
    words: tuple[str, ...],
    limit_s: float,
    settings: Mapping[str, str],
    on_line: Hear | None = None,
    merged: bool = False,
) -> Ran:
    """Runs the words for at most limit_s and GRACE_S. settings: the environment where the unit's
    own cannot be had, because this login may not become its user. on_line: called with each line
    as it comes. merged: what it says on stderr comes between its output. HostError where the host
    fails."""
    if unit.scope is not Scope.USER and not facts.root:
        # systemd reads $$ in a unit's command as $; here nobody does.
        literal = tuple(word.replace("$$", "$") for word in words)
        return run_as_login(there, literal, limit_s, settings, on_line, merged)
    cut_s = limit_s + GRACE_S
    args = (unit.scope, *_properties(unit, cut_s), "/bin/sh", "-s", "--", f"{cut_s:g}", *words)
    result = there.run(
        _AS_UNIT, *args, stdin=_cut(merged).encode(), timeout_s=cut_s + SSH_S, on_line=on_line
    )
    return _ran(result, as_unit=True)


def run_as_login(
    there: Connection,
    words: tuple[str, ...],
    limit_s: float,
    settings: Mapping[str, str],
    on_line: Hear | None = None,
    merged: bool = False,
) -> Ran:
    """The same as whom we log in, with these settings for its environment."""
    cut_s = limit_s + GRACE_S
    exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in settings.items())
    script = _AS_LOGIN + exports + _cut(merged)
    result = there.run(script, f"{cut_s:g}", *words, timeout_s=cut_s + SSH_S, on_line=on_line)
    return _ran(result, as_unit=False)


def _cut(merged: bool) -> str:
    return _CUT % (KILL_S, " 2>&1" if merged else "")


def _ran(result: Result, as_unit: bool) -> Ran:
    out, told, code = result.out.decode(errors="replace").rpartition(_EXIT)
    if not told:
        out, code = code, str(result.code)
    return Ran(_code(code), out, result.err.decode(errors="replace"), bool(told), as_unit)


def _code(text: str) -> int:
    word = text.strip()
    return int(word) if word.lstrip("-").isdecimal() else -1


def _properties(unit: UnitFacts, cut_s: float) -> tuple[str, ...]:
    """Options of systemd-run. What stands in the unit itself is no secret: anybody there may read
    it. The environment files are read by systemd."""
    scope = ("--user",) if unit.scope is Scope.USER else ()
    workdir = f"-{unit.workdir[1:]}" if unit.workdir.startswith("!") else unit.workdir
    return (
        *scope,
        "--quiet",
        "--pipe",
        "--wait",
        "--collect",
        f"--property=RuntimeMaxSec={cut_s + KILL_S + 1:g}",
        *(f"--setenv={each}" for each in unit.environment),
        *(f"--property=EnvironmentFile={'-' * opt}{path}" for path, opt in unit.files),
        *((f"--property=User={unit.user}",) if unit.user else ()),
        *((f"--property=Group={unit.group}",) if unit.group else ()),
        *((f"--property=WorkingDirectory={workdir}",) if workdir else ()),
    )
