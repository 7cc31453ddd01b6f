"""What ``systemctl show`` says of a unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from cogrid.ops.unit.quoting import split

PROPERTIES = (
    "Id", "LoadState", "LoadError", "ActiveState", "SubState", "Result", "ExecMainCode",
    "ExecMainStatus", "MainPID", "NRestarts", "FragmentPath", "DropInPaths", "UnitFileState",
    "NeedDaemonReload", "StatusText", "Restart", "StartLimitBurst", "StartLimitIntervalUSec",
    "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic",
)  # fmt: skip
SHOW = ("show", "--no-pager", f"--property={','.join(PROPERTIES)}", "--")
"""Words between ``systemctl`` (or ``systemctl --user``) and the units."""

_SPAN = re.compile(r"(\d{1,20})(us|ms|s|min|h|d|w|month|y)\b")
_SECONDS = {
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
    "month": 2629800.0, "y": 31557600.0,
}  # fmt: skip
"""What systemd writes spans of time in (systemd.time(7))."""


class How(StrEnum):
    """How a process ended (si_code of waitid(2), as ExecMainCode tells it)."""

    EXITED = "exited"
    KILLED = "killed"
    DUMPED = "dumped"


_HOW = {"1": How.EXITED, "2": How.KILLED, "3": How.DUMPED}


@dataclass(frozen=True, slots=True)
class UnitState:
    """One unit, in systemd's words.

    load: loaded, not-found, bad-setting, error, masked. active: active, activating, inactive,
    deactivating, failed. sub: running, start, auto-restart, dead and so on. result: success, or why
    it failed: exit-code, signal, core-dump, watchdog, timeout, protocol, resources, oom-kill,
    start-limit-hit. how, status: how its process last ended, with which exit code or signal; None
    where none has. pid: of what runs, 0 if nothing does. restarts: since it was last started by
    somebody. path: of its file, "" where there is none; then every other word is a default and says
    nothing. enabled: whether it starts with the machine: enabled, disabled, static and so on.
    stale: its file was changed after systemd read it. said: what it says of itself. trouble: why it
    cannot be loaded.
    """

    unit: str
    load: str
    active: str
    sub: str
    result: str = "success"
    how: How | None = None
    status: int = 0
    pid: int = 0
    restarts: int = 0
    path: str = ""
    drop_ins: tuple[str, ...] = ()
    enabled: str = ""
    stale: bool = False
    said: str = ""
    trouble: str = ""
    gave_up: bool = False

    @property
    def installed(self) -> bool:
        """There is a file. A manager asked about a unit of the other scope knows none."""
        return bool(self.path)

    @property
    def running(self) -> bool:
        """Its process is up, by its own word."""
        return self.active == "active" and self.sub == "running"


def parse_states(text: str) -> tuple[UnitState, ...]:
    """What ``systemctl show`` printed of one unit or several, in the order in which they were
    named. Properties that an older systemd does not know keep their defaults."""
    blocks = (block for block in text.replace("\r", "").split("\n\n") if block.strip())
    return tuple(_state(dict(_pairs(block))) for block in blocks)


def parse_state(text: str) -> UnitState:
    """Of one unit; of nothing at all, a unit that is not there."""
    return next(iter(parse_states(text)), UnitState("", "not-found", "inactive", "dead"))


def _pairs(block: str) -> list[tuple[str, str]]:
    lines = (line.partition("=") for line in block.split("\n"))
    return [(key, value) for key, equals, value in lines if equals]


def _state(found: dict[str, str]) -> UnitState:
    return UnitState(
        unit=found.get("Id", ""),
        load=found.get("LoadState", ""),
        active=found.get("ActiveState", ""),
        sub=found.get("SubState", ""),
        result=found.get("Result", "") or "success",
        how=_HOW.get(found.get("ExecMainCode", "")),
        status=_number(found.get("ExecMainStatus", "")),
        pid=_number(found.get("MainPID", "")),
        restarts=_number(found.get("NRestarts", "")),
        path=found.get("FragmentPath", ""),
        drop_ins=split(found.get("DropInPaths", "")),
        enabled=found.get("UnitFileState", ""),
        stale=found.get("NeedDaemonReload", "") == "yes",
        said=found.get("StatusText", ""),
        trouble=_trouble(found.get("LoadError", "")),
        gave_up=_gave_up(found),
    )


def _gave_up(found: dict[str, str]) -> bool:
    """systemd 252 names the start limit as the result only where somebody asked for one start more;
    a restart of its own that it refuses keeps the result of the last run. What tells that: all the
    restarts are used up, and the last run was shorter than the time that they are counted in."""
    if found.get("Result") == "start-limit-hit":
        return True
    burst = _number(found.get("StartLimitBurst", ""))
    started = _number(found.get("ExecMainStartTimestampMonotonic", ""))
    ended = _number(found.get("ExecMainExitTimestampMonotonic", ""))
    return (
        found.get("ActiveState") == "failed"
        and found.get("Restart", "no") != "no"
        and 0 < burst <= _number(found.get("NRestarts", ""))
        and (ended - started) / 1e6 < _seconds(found.get("StartLimitIntervalUSec", ""))
    )


def _seconds(span: str) -> float:
    return sum(int(number) * _SECONDS[unit] for number, unit in _SPAN.findall(span))


def _trouble(error: str) -> str:
    """``org.freedesktop.systemd1.BadUnitSetting "Unit x has a bad unit file setting."``"""
    _, quote, text = error.partition('"')
    return text.rstrip('"') if quote else ""


def _number(text: str) -> int:
    """systemd counts in 64 bits; Python refuses to read a number of thousands of digits."""
    return int(text) if text.isdecimal() and len(text) <= 20 else 0
