"""Asks a host which Python it has, and chooses one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cogrid.ops.delivery.python import OLDEST, HostPython
from cogrid.ops.delivery.refusal import DeliveryError

if TYPE_CHECKING:
    from cogrid.remote.connection import Connection

ASK = r"""
cd /
ask() { [ -f "$1" ] && [ -x "$1" ] && "$1" -E -s -c "$facts" </dev/null 2>/dev/null; }
facts=$1
if [ -n "$2" ]; then ask "$2"; exit 0; fi
set -f
IFS=:
for place in /usr/bin /usr/local/bin $PATH; do
    set +f
    for each in "$place"/python3 "$place"/python3.[0-9] "$place"/python3.[0-9][0-9]; do
        ask "$each"
    done
    set -f
done
exit 0
"""
"""$1: facts.py. $2: the only one to ask, or "". A line for each interpreter that answers."""
ASK_S = 60.0
"""A dozen interpreters, each half a second on a slow machine."""
_MACHINES_32 = {"aarch64": "armv7l", "armv8l": "armv7l", "x86_64": "i686"}
"""What a 32-bit Python on a 64-bit kernel was built for."""
_CURE = (
    "install Python 3.11 or later there (Debian 12, Ubuntu 24.04, Fedora and later bring one),"
    " or say where it is: --python PATH"
)


def read_python(connection: Connection, wanted: str = "") -> HostPython:
    """The Python to install into; changes nothing. wanted: the path of the one to take, "": the
    machine's own if it will do, else the newest there. DeliveryError where none will do."""
    if wanted and not PurePosixPath(wanted).is_absolute():
        wanted = connection.run('command -v -- "$1" || :', wanted).text or f"/{wanted}"
    facts = resources.files(__package__).joinpath("facts.py").read_text()
    said = connection.run(ASK, facts, wanted, timeout_s=ASK_S)
    return choose(connection.target.shown, parse(said.text), wanted)


def parse(text: str) -> tuple[HostPython, ...]:
    """Each interpreter that answered, once; lines that are none of ours are passed over."""
    found: dict[str, HostPython] = {}
    for line in text.splitlines():
        try:
            python = _parse(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue
        found.setdefault(python.path, python)
    return tuple(found.values())


def _parse(said: dict[str, object]) -> HostPython:
    markers = said["markers"]
    version = said["version"]
    if not isinstance(markers, dict) or not isinstance(version, list):
        raise TypeError
    major, minor, micro = map(int, version)
    libc = re.match(r"(\w+) (\d+)\.(\d+)", str(said["libc"]))
    machine = str(markers["platform_machine"])
    return HostPython(
        path=str(said["path"]),
        version=(major, minor, micro),
        implementation=str(markers["implementation_name"]),
        abi=f"cp{major}{minor}{'t' if said['free_threaded'] else ''}",
        machine=_MACHINES_32.get(machine, machine) if said["bits"] == 32 else machine,
        libc=libc[1] if libc else "",
        libc_version=(int(libc[2]), int(libc[3])) if libc else (0, 0),
        venv=bool(said["venv"]),
        markers=tuple(sorted((str(name), str(value)) for name, value in markers.items())),
    )


def choose(host: str, found: tuple[HostPython, ...], wanted: str = "") -> HostPython:
    """The one to take. DeliveryError says what was found instead."""
    able = [python for python in found if not wrong(python)]
    if able:
        own = [python for python in able if python.path.startswith("/usr/bin/")]
        return max(own or able, key=lambda python: python.version)
    if wanted and not found:
        raise DeliveryError(host, "python", f"{wanted} is no Python that runs there", _CURE)
    what = "; ".join(_described(found)) or "there is none in /usr/bin, /usr/local/bin or PATH"
    raise DeliveryError(host, "python", f"no Python that cogrid can use: {what}", _CURE)


def _described(found: Iterable[HostPython]) -> Iterable[str]:
    for python in found:
        yield f"{python.path} {wrong(python)}"


def wrong(python: HostPython) -> str:
    """Why cogrid cannot use it, "" where it can."""
    number = ".".join(map(str, python.version))
    if python.version[:2] < OLDEST:
        return f"is {number}, cogrid needs {'.'.join(map(str, OLDEST))}"
    if python.implementation != "cpython":
        return f"is {python.implementation}, cogrid needs CPython"
    if dict(python.markers)["sys_platform"] != "linux":
        return f"runs on {dict(python.markers)['sys_platform']}, cogrid's units on Linux"
    if not python.venv:
        return f"({number}) cannot make environments: its module venv is not installed"
    return ""
