"""Each step of an installation, and what takes it back."""

from __future__ import annotations

from cogrid.ops.install.undoing import Step

STOP_S = 30
"""For a unit that is taken back to stop; then it is killed. It has only just started."""
INSTALL_S = 900.0
"""For the upload on a slow line and the installation on a slow machine."""
SWITCH_S = 120.0
END_S = 10
"""For a process that was started by hand to end by itself."""

_SAME = '[ "$(sed "s/.*) //" "/proc/$1/stat" 2>/dev/null | cut -d" " -f20)" = "$2" ]'
"""Process $1 is the one that started in tick $2; numbers are given out again."""


def add_user(user: str) -> Step:
    """A user of the system without home and login."""
    return Step(
        "user",
        'getent passwd "$1" >/dev/null || useradd --system --user-group --no-create-home '
        '--home-dir /nonexistent --shell "$(command -v nologin || echo /bin/false)" "$1"',
        '! getent passwd "$1" >/dev/null || userdel "$1"',
        (user,),
    )


def go_on(unit: str) -> Step:
    """Changes nothing; taken back last, it starts the unit anew that ran before, as it was."""
    return Step("running", undo='[ ! -e "$T/started" ] || ctl start --no-block "$1"', words=(unit,))


def install(base: str, name: str, staging: str) -> Step:
    """Before an installation is put beside the others. Taken back where it was not there before,
    together with whatever still works on it: programs of its own, and the process whose last word
    begins with ``staging``; nobody who only reads it."""
    note = """
[ -e "$1/versions/$2" ] || : >"$T/kept/fresh"
make_folder "$1" install
"""
    undo = """
if [ -e "$T/kept/fresh" ]; then
    for each in /proc/[0-9]*; do
        case $({ tr '\\0' '\\n' <"$each/cmdline"; } 2>/dev/null) in
            "$1/versions/$2/"*|*"
-I
-c
"*"
$3"*) kill -KILL "${each#/proc/}" 2>/dev/null ;;
        esac
    done
    rm -rf "$1/versions/$2"
    rmdir "$1/versions" 2>/dev/null
fi
drop_folders install
"""
    return Step("install", note, undo, (base, name, staging), INSTALL_S)


def switch(base: str) -> Step:
    """Before the link to the installation that is used is another one."""
    note = """
readlink "$1/current" >"$T/kept/current" || :
"""
    undo = """
if [ -s "$T/kept/current" ]; then
    ln -sfn "$(cat "$T/kept/current")" "$1/.back" && mv -T "$1/.back" "$1/current"
elif [ -e "$T/kept/current" ]; then
    rm -f "$1/current"
fi
"""
    return Step("switch", note, undo, (base,), SWITCH_S)


def place(name: str, path: str, reload: bool = False) -> Step:
    """Before a file is written: its folder is made, and what stands there is kept. reload: systemd
    is told, once it is taken back."""
    note = """
make_folder "${1%/*}" "$2"
[ ! -e "$1" ] || cp -a "$1" "$T/kept/$2"
: >"$T/kept/$2.ready"
"""
    undo = """
if [ -e "$T/kept/$2" ]; then
    cmp -s "$T/kept/$2" "$1" || { cp -a "$T/kept/$2" "$1.back" && mv "$1.back" "$1"; }
elif [ -e "$T/kept/$2.ready" ]; then
    rm -f "$1"
fi
drop_folders "$2"
"""
    after = "ctl daemon-reload\n" if reload else ""
    return Step(name, note, undo + after, (path, name))


def reload() -> Step:
    """systemd reads its units anew."""
    return Step("reload", "ctl daemon-reload")


def freeze(pid: int, started: str) -> Step:
    """A process that was started by hand stands still, until ``end`` or until it is taken back."""
    do, undo = f'{_SAME}; kill -STOP "$1"', f'! {_SAME} || kill -CONT "$1"'
    return Step("freeze", do, undo, (str(pid), started))


def end(pid: int, started: str) -> Step:
    """A frozen process ends: asked at first, then killed. After all has been proved."""
    do = f"""
if {_SAME}; then
    kill -TERM "$1"
    kill -CONT "$1"
    for _ in $(seq {END_S * 5}); do {_SAME} || break; sleep 0.2; done
    ! {_SAME} || kill -KILL "$1"
fi
"""
    return Step("end", do, words=(str(pid), started), limit_s=END_S + 10.0)


def replace(unit: str, enabled: bool, active: bool) -> Step:
    """Another unit that runs a worker is stopped and does not start again."""
    undo = [
        *(['ctl enable "$1"'] if enabled else []),
        *(['ctl start --no-block "$1"'] if active else []),
    ]
    return Step("replace", 'ctl disable --now "$1"', "\n".join(undo) or ":", (unit,), 180.0)


def enable(unit: str) -> Step:
    """The unit starts with the machine."""
    return Step("enable", 'ctl enable "$1"', 'ctl disable "$1"', (unit,))


def start(unit: str, state_directory: str) -> Step:
    """The unit starts, or starts anew; prints the host's time. state_directory: what systemd makes
    for it; gone with it when it was not there before."""
    do = """
[ -e "$2" ] || : >"$T/no-state"
: >"$T/started"
ctl reset-failed "$1" 2>/dev/null || :
ctl restart --no-block "$1"
date +%s
"""
    undo = f"""
if [ -e "$T/started" ]; then
    timeout {STOP_S} systemctl "$scope" stop "$1" || ctl kill --signal=KILL "$1"
    ctl reset-failed "$1" 2>/dev/null
    if [ -e "$T/no-state" ]; then
        rm -rf "$2"
        rmdir "${{2%/*}}" 2>/dev/null
    fi
fi
"""
    return Step("start", do, undo, (unit, state_directory))
