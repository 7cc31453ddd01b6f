"""The command that a unit runs: made from settings, and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cogrid.model.host import Role
from cogrid.ops.unit.settings import UnitSettings

_BEGINS: dict[Role, tuple[str, ...]] = {
    Role.WORKER: ("worker", "run"),
    Role.COORDINATOR: ("coordinator", "run"),
    Role.REAPER: ("reaper", "--daemon"),
}
_OPTIONS: dict[Role, dict[str, tuple[str, Callable[[str], Any]]]] = {
    Role.WORKER: {
        "--id": ("id", str),
        "--pool": ("pool", str),
        "--engine": ("engine", str),
        "--slots": ("slots", int),
        "--models": ("models", lambda text: tuple(text.split(","))),
    },
    Role.COORDINATOR: {"--listen": ("listen", str)},
    Role.REAPER: {},
}
"""Option -> the field of UnitSettings, and how its text is read."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ours. fields: of UnitSettings, as far as options set them."""

    role: Role
    program: tuple[str, ...]
    fields: Mapping[str, Any]


def words(settings: UnitSettings) -> tuple[str, ...]:
    """The words of the command, its program first."""
    return (*settings.program, *_BEGINS[settings.role], *_options(settings))


def read_command(command: tuple[str, ...]) -> Command | None:
    """What the words say; None where they are no command that a unit of ours has."""
    for start in range(1, len(command) - 1):
        for role, begins in _BEGINS.items():
            if command[start : start + 2] == begins:
                fields = _fields(role, command[start + 2 :])
                return None if fields is None else Command(role, command[:start], fields)
    return None


def _options(settings: UnitSettings) -> tuple[str, ...]:
    return tuple(
        word
        for option, (name, _) in _OPTIONS[settings.role].items()
        if (value := getattr(settings, name))
        for word in (option, ",".join(value) if isinstance(value, tuple) else str(value))
    )


def _fields(role: Role, options: tuple[str, ...]) -> dict[str, Any] | None:
    known = _OPTIONS[role]
    if len(options) % 2 or not known.keys() >= set(options[::2]):
        return None
    try:
        return {
            known[option][0]: known[option][1](text)
            for option, text in zip(options[::2], options[1::2], strict=True)
        }
    except ValueError:
        return None
