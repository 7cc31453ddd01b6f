"""What was done to a host is taken back there, by the host itself, whatever becomes of this side.

Before each step the host is told how to take it back. A service on the host, the guard, does so,
the last step first, when it is told to, when the connection is gone, or when it has heard nothing
for GRACE_S. So a cut connection, a killed cogrid and a failed step end the same way.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from cogrid.errors import CogridError, ConflictError, Exit
from cogrid.model.host import Scope
from cogrid.remote.connection import Connection, Result

GRACE_S = 20.0
"""So long after the last sign from here the guard takes everything back: a connection whose packets
are dropped looks alive for hours."""
BACK_S = 90.0
"""Taking back stops and starts units, each of which may take a while."""
LOOK_S = 0.2
DIRECTORIES = {Scope.SYSTEM: "/var/lib/cogrid-install", Scope.USER: "$HOME/.cogrid-install"}
"""On the disk, so that what a reboot breaks off is taken back by the next installation."""
GUARD_UNIT = "cogrid-install"
"""There is one of that name, so two installations never work on one host at once."""
_BUSY, _BACK, _LEFT = 75, 76, 77
"""Exit codes of ours, unlike those of what a step runs."""


@dataclass(frozen=True, slots=True)
class Step:
    """name: as an operator reads it. do, undo: texts of POSIX sh, where $T is the guard's directory
    (what is noted stands in kept/) and ``ctl`` systemctl in the right scope; the words are $1 and
    so on in both. undo may run twice, and also where ``do`` never began or broke off. limit_s: for
    ``do``."""

    name: str
    do: str = ""
    undo: str = ""
    words: tuple[str, ...] = ()
    limit_s: float = 30.0


class StepError(CogridError):
    """A step failed on a host; the message names both and the cause."""

    exit_code = Exit.SOME_HOSTS


_PRELUDE = """\
T={directory}
export XDG_RUNTIME_DIR="${{XDG_RUNTIME_DIR:-/run/user/$(id -u)}}"
scope={scope}
ctl() {{ systemctl "$scope" "$@"; }}
make_folder() {{ # $1, and notes under the name $2 which of its parents were not there
    folder=$1
    until [ -d "$folder" ]; do
        echo "$folder" >>"$T/kept/$2.folders"
        folder=${{folder%/*}}
    done
    mkdir -p -m 755 "$1"
}}
drop_folders() {{ # those that were noted and are empty
    [ -e "$T/kept/$1.folders" ] || return 0
    while read -r folder; do rmdir "$folder" 2>/dev/null; done <"$T/kept/$1.folders"
    return 0
}}
"""
_STILL = """\
still() {
    read -r up _ </proc/uptime
    echo "$((${up%%.*} + $1))" >"$T/until.new" && mv "$T/until.new" "$T/until"
}
"""
_BEGIN = """\
umask 077
if [ -d "$T" ]; then
    ! ctl --quiet is-active "$1" || exit 75
    sh "$T/guard" "$T" now || exit 77
fi
mkdir "$T" 2>/dev/null || exit 75
set -e
mkdir "$T/undo" "$T/kept"
cat >"$T/guard"
process=$$
while [ "$process" -gt 1 ]; do
    read -r name <"/proc/$process/comm"
    case $name in sshd*|dropbear*) break ;; esac
    process=$(sed 's/.*) //' "/proc/$process/stat" | cut -d' ' -f2)
done
if [ "$process" -gt 1 ]; then
    echo "$process $(sed 's/.*) //' "/proc/$process/stat" | cut -d' ' -f20)" >"$T/session"
fi
still "$2"
systemd-run "$scope" --quiet --collect --unit="$1" /bin/sh "$T/guard" "$T" || {
    rm -rf "$T"
    exit 1
}
"""
_PREPARE = """\
[ -d "$T/undo" ] || exit 76
set -e
umask 077
printf '%s' "$2" >"$T/new"
mv "$T/new" "$T/undo/$1"
still "$3"
shift 3
"""
_DO = """\
read -r _ _ _ _ group _ </proc/$$/stat
echo "$group" >"$T/step"
"""
_DONE = """
rm -f "$T/step"
still {grace:.0f}
"""
_STILL_THERE = """\
[ -d "$T/undo" ] || exit 76
still "$1"
"""
_IS_BACK = """\
code=77
! ctl --quiet is-active "$1" || code=75
[ -d "$T" ] || exit 0
exit "$code"
"""
"""Asked in this order, since the guard removes the directory and then ends."""
_KEEP = """\
mv "$T/undo" "$T/over" || exit 76
rm -rf "$T"
"""


class Undoing:
    """An installation on one host, from ``begin`` to ``keep`` or ``back``."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self._connection = connection
        self._root = scope is Scope.SYSTEM
        which = "--system" if self._root else "--user"
        self._prelude = _PRELUDE.format(directory=f'"{DIRECTORIES[scope]}"', scope=which)
        self._directory = DIRECTORIES[scope]
        self._steps = 0

    def begin(self) -> None:
        """Take back what an earlier installation has left there, if any, and start the guard."""
        guard = resources.files("cogrid.ops.install").joinpath("guard.sh").read_bytes()
        done = self._run(_BEGIN, GUARD_UNIT, f"{GRACE_S:.0f}", stdin=guard, limit_s=BACK_S)
        if done.code == _BUSY:
            raise ConflictError(f"{self._host}: another installation is at work there")
        if done.code == _LEFT:
            raise self._not_taken_back("an earlier installation")
        self._check("begin", done)

    def step(self, step: Step) -> str:
        """Do it; what it printed. StepError where it failed."""
        script = _PREPARE + _DO + step.do + _DONE.format(grace=GRACE_S)
        done = self._run(script, *self._prepared(step), *step.words, limit_s=step.limit_s)
        self._check(step.name, done)
        return done.text

    def by_hand(self, step: Step, do: Callable[[], None]) -> None:
        """The same for a step that is done from here, over the connection; its ``do`` is only what
        must be noted there first."""
        script = _PREPARE + step.do
        self._check(step.name, self._run(script, *self._prepared(step), *step.words))
        do()
        self.still(step.name)

    def still(self, name: str) -> None:
        """A sign from here. StepError where the guard has taken everything back meanwhile."""
        self._check(name, self._run(_STILL_THERE, f"{GRACE_S:.0f}"))

    def keep(self) -> None:
        """All is well: from now on nothing is taken back."""
        self._check("keep", self._run(_KEEP))

    def back(self) -> None:
        """Have everything taken back, and wait for that. StepError names what could not be."""
        end_s = time.monotonic() + BACK_S
        self._run('[ ! -d "$T" ] || : >"$T/back"')
        while True:
            done = self._run(_IS_BACK, GUARD_UNIT)
            if not done.code:
                return
            if done.code == _LEFT or time.monotonic() > end_s:
                raise self._not_taken_back("the installation")
            time.sleep(LOOK_S)

    def _prepared(self, step: Step) -> tuple[str, str, str]:
        """Its name in the order of steps, how it is taken back, and how long it may be still."""
        self._steps += 1
        words = " ".join(map(shlex.quote, step.words))
        undo = f"{self._prelude}set -- {words}\n{step.undo}\n"
        return f"{self._steps:02d}-{step.name}", undo, f"{step.limit_s + GRACE_S:.0f}"

    def _run(self, script: str, *words: str, stdin: bytes = b"", limit_s: float = 30.0) -> Result:
        text = self._prelude + _STILL + script
        return self._connection.run(text, *words, stdin=stdin, timeout_s=limit_s, root=self._root)

    def _check(self, name: str, done: Result) -> None:
        if done.code == _BACK:
            raise StepError(
                f"{self._host}: {name}: the host had heard nothing for {GRACE_S:g} s"
                " and has taken back what was done",
                "try it again over a better connection",
            )
        if done.code:
            said = done.err.decode(errors="replace").strip() or f"it ended with code {done.code}"
            raise StepError(f"{self._host}: {name} failed: {said.splitlines()[-1]}")

    def _not_taken_back(self, what: str) -> StepError:
        failed = self._run('tr "\\n" "," <"$T/failed"').text.strip(",").replace(",", ", ")
        return StepError(
            f"{self._host}: what {what} has done could not be taken back: {failed or 'all of it'}",
            f"the file log in {self._directory} there says why; mend it, and remove that directory",
        )

    @property
    def _host(self) -> str:
        return self._connection.target.shown
