"""Workers that run on a host already and are not the unit's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from cogrid.ops.install.facts import Login, Look, Running
from cogrid.ops.unit.file import parse_unit
from cogrid.ops.unit.quoting import from_command_line, raw
from cogrid.ops.unit.settings import UnitSettings
from cogrid.ops.unit.state import UnitState, parse_state


@dataclass(frozen=True, slots=True)
class Other:
    """A worker that is there already and is not this unit's. unit: "" for a process that was
    started by hand."""

    what: str
    unit: str = ""
    enabled: bool = False
    active: bool = False
    pid: int = 0
    started: str = ""


def find_others(settings: UnitSettings, login: Login, look: Look) -> Iterator[Other]:
    """By their units, or by their processes where none has them."""
    for found in look.workers:
        if found.unit == settings.unit_name or _is_another(found, settings, login):
            continue
        if found.unit:
            state = parse_state(found.state)
            enabled, up = state.enabled == "enabled", is_up(state)
            if enabled or up:
                yield Other(f"{found.unit} ({found.path})", found.unit, enabled, up)
        else:
            what = f"process {found.pid} of {found.user}, started by hand: {_shown(found.words)}"
            yield Other(what, pid=found.pid, started=found.started)


def _is_another(found: Running, settings: UnitSettings, login: Login) -> bool:
    """Whether it is a cogrid worker of another name, which may well run beside this one."""
    words = _started(found) if found.unit else found.words
    if "worker" not in words or "run" not in words:
        return False
    its = _id(words)
    if found.unit and not its:
        return False  # its environment, which may name it, is not known
    return (its or login.name.lower()) != settings.id


def _started(found: Running) -> tuple[str, ...]:
    """The words of a unit's command, with the instance of a template filled in."""
    line = parse_unit(found.text).last("Service", "ExecStart")
    instance = found.unit.removesuffix(".service").partition("@")[2]
    return from_command_line(line.replace("%i", raw(instance)))


def _id(words: tuple[str, ...]) -> str:
    """In both ways in which an option is given."""
    apart = (after for word, after in pairwise(words) if word == "--id")
    joined = (word.removeprefix("--id=") for word in words if word.startswith("--id="))
    return next(chain(apart, joined), "")


def _shown(words: tuple[str, ...]) -> str:
    """The program and what it runs, without what follows, and without variables (``sudo A=b …``): a
    password may be among them."""
    return shlex.join(word for word in words[:2] if "=" not in word)


def is_up(state: UnitState) -> bool:
    """Whether it runs, or would run again in a moment."""
    return state.installed and state.active not in ("inactive", "failed")
