"""The keys that can be set, and text or TOML made into their values."""

from __future__ import annotations

import math
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Any

from cogrid.config.settings import Client, Coordinator, Log, Redis, Worker
from cogrid.model.limits import Limits
from cogrid.rules.routing import Routing

SECTIONS: dict[str, type] = {
    "redis": Redis,
    "coordinator": Coordinator,
    "client": Client,
    "worker": Worker,
    "log": Log,
    "limits": Limits,
    "routing": Routing,
}

SECRET = frozenset({"redis.url", "redis.password", "client.api_key", "worker.engine_key"})
"""Keys whose value appears in no message."""

ALIASES = {"COGRID_PREFIX": "redis.prefix"}
"""Variables beside the rule COGRID_SECTION_KEY."""

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")
_WANTED = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[str, ...]": "a list of texts",
}


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody set. source: ``cogrid.toml:4``, a variable, or ``command line``. in_file:
    it comes from the file, so it has TOML's type and paths in it begin there."""

    key: str
    value: object
    source: str
    in_file: bool = False


class WrongValueError(ValueError):
    """Says what the value should have been."""


@cache
def known() -> dict[str, Field[Any]]:
    """``section.key`` -> its field. The rules of ``[[domain]]`` are no key."""
    return {
        f"{section}.{each.name}": each
        for section, settings in SECTIONS.items()
        for each in fields(settings)
        if each.name != "domains"
    }


def variable(key: str) -> str:
    """The environment variable of a key: ``limits.lease_s`` is ``COGRID_LIMITS_LEASE_S``."""
    return f"COGRID_{key.replace('.', '_').upper()}"


def value_of(key: str, value: object) -> object:
    """The value in the type of its key; text is read, as from a variable. WrongValueError."""
    kind = str(known()[key].type)
    return _found(kind, _from_text(kind, value) if isinstance(value, str) else _toml(kind, value))


def typed(kind: str, value: object) -> object:
    """A value of a TOML file in the type of its field, such as ``tuple[str, ...]``.
    WrongValueError."""
    is_text = kind == "str" and isinstance(value, str)
    return _found(kind, value if is_text else _toml(kind, value))


def _found(kind: str, value: object | None) -> object:
    if value is None:
        raise WrongValueError(f"write {_WANTED[kind]}")
    return value


def _from_text(kind: str, text: str) -> object | None:
    match kind:
        case "str":
            return text
        case "bool":
            lower = text.strip().lower()
            return lower in _YES if lower in _YES or lower in _NO else None
        case "tuple[str, ...]":
            return tuple(part for each in text.split(",") if (part := each.strip()))
        case _:
            return _number(kind, text)


def _number(kind: str, text: str) -> object | None:
    try:
        number = int(text) if kind == "int" else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _toml(kind: str, value: object) -> object | None:
    if isinstance(value, bool):
        return value if kind == "bool" else None
    if isinstance(value, int) and kind in ("int", "float"):
        return float(value) if kind == "float" else value
    if isinstance(value, float) and kind == "float":
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple) and kind == "tuple[str, ...]":
        return tuple(value) if all(isinstance(each, str) for each in value) else None
    return None
