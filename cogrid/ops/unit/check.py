"""What no unit can be made of, because systemd could not say it or would run something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from unicodedata import category

from cogrid.config.check import wrong
from cogrid.model.host import Role, Scope
from cogrid.ops.unit.quoting import BLANK
from cogrid.ops.unit.settings import UnitSettings
from cogrid.ops.unit.variables import FIELDS, variables

_UNIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.-]*(@[A-Za-z0-9:_.-]+)?\.service")
"""One that begins with ``-`` would be an option to systemctl."""
LONGEST_UNIT = 255
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HIDDEN = ("/tmp", "/var/tmp")
"""A unit with PrivateTmp= sees its own."""
LONGEST_RESTART_S = 3600


def problems(settings: UnitSettings) -> tuple[str, ...]:
    """Everything that is wrong, a sentence each; no secret is in one."""
    found = (
        *_of_the_unit(settings),
        *_of_the_role(settings),
        *_of_paths(settings),
        *_of_the_environment(settings),
    )
    return tuple(dict.fromkeys(found))


def _of_the_unit(settings: UnitSettings) -> Iterator[str]:
    name = settings.unit_name
    if settings.role is Role.WORKER and not settings.id:
        yield "a worker's unit needs the worker's id"
    elif not _UNIT.fullmatch(name) or len(name) > LONGEST_UNIT:
        yield f"the unit's name {name!r} is none: a letter or digit, then also : - _ . @"
    if not 1 <= settings.restart_s <= LONGEST_RESTART_S:
        yield f"{settings.restart_s} s until the next start: write 1 to {LONGEST_RESTART_S}"
    if settings.scope is Scope.SYSTEM and not _is_user(settings.user):
        yield f"the user's name {settings.user!r} is none"


def _of_the_role(settings: UnitSettings) -> Iterator[str]:
    for key, value in (
        ("worker.id", settings.id),
        ("worker.pool", settings.pool),
        ("worker.engine", settings.engine),
        ("worker.slots", settings.slots),
    ):
        if right := wrong(key, value):
            yield f"{key} is {value!r}: {right}"
    if settings.listen and (right := wrong("coordinator.listen", settings.listen)):
        yield f"coordinator.listen is {settings.listen!r}: {right}"
    for model in settings.models:
        if not model or "," in model or model != model.strip():
            yield f"the model's name {model!r} is none: no comma, no space around it"
    yield from _of_text("an option", *settings.models, settings.engine, settings.listen)


def _of_paths(settings: UnitSettings) -> Iterator[str]:
    program, *more = settings.program or ("",)
    if not _is_path(program) or any(char in program for char in "\"'\\$"):
        yield f"the program {program!r} is no absolute path that systemd starts: no quote, \\ or $"
    elif _is_hidden(program, settings):
        yield f"the program {program} is in a place for temporary files: install it elsewhere"
    yield from _of_text("the program", *more)
    place = settings.workdir
    if not place:
        return
    if not _is_path(place) or place.endswith((*BLANK, "\\")):
        yield f"the working directory {place!r} is no absolute path that a unit can name"
    elif _is_hidden(place, settings):
        yield f"the working directory {place} is a place for temporary files: the unit has its own"


def _of_the_environment(settings: UnitSettings) -> Iterator[str]:
    for name, value in variables(settings):
        yield from _of_text(f"the value of {name}", value)
    names = [name for name, _ in settings.environment]
    for name in names:
        if not _VARIABLE.fullmatch(name):
            yield f"{name!r} is no name of a variable"
        elif name in FIELDS or names.count(name) > 1:
            yield f"{name} is set twice"


def _of_text(what: str, *values: str) -> Iterator[str]:
    if not all(_is_text(value) for value in values):
        yield f"{what} has a line end or another character that no unit file can hold"


def _is_text(value: str) -> bool:
    return not any(category(char) in ("Cc", "Cs") or _is_no_character(char) for char in value)


def _is_no_character(char: str) -> bool:
    """Code points that Unicode keeps free for ever; systemd takes a text with one for broken."""
    return 0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE


def _is_path(path: str) -> bool:
    return path.startswith("/") and path == normpath(path) and path != "/" and _is_text(path)


def _is_hidden(path: str, settings: UnitSettings) -> bool:
    return settings.scope is Scope.SYSTEM and any(
        path == place or path.startswith(f"{place}/") for place in _HIDDEN
    )


def _is_user(name: str) -> bool:
    return (
        bool(name)
        and name not in (".", "..")
        and _is_text(name)
        and name == name.strip()
        and not any(char in name for char in ":/")
        and not name.endswith("\\")
    )
