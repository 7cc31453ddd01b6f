"""Scripts and calls, apart from any connection.

A transition's typed function builds a :class:`Call`; a sync or an async store runs it. So each
transition is written once, whoever calls it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

from cogrid.store.linking import linked

T = TypeVar("T")
Arg = str | int | float | bytes

_LUA = resources.files("cogrid.store") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    """One transition: the text that is sent, and the SHA-1 that calls it afterwards."""

    name: str
    source: str
    sha: str

    @classmethod
    def of(cls, name: str, source: str) -> Script:
        """A script from its text; the server names it by the SHA-1 of exactly this text."""
        return cls(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@cache
def script(name: str) -> Script:
    """``lua/<name>.lua`` with the parts its ``-- include:`` lines name put in front, linked."""
    body = (_LUA / f"{name}.lua").read_text("utf-8")
    parts = [
        (_LUA / "include" / f"{part}.lua").read_text("utf-8")
        for line in body.splitlines()
        if line.startswith("-- include:")
        for part in line.removeprefix("-- include:").split()
    ]
    return Script.of(name, linked("\n".join([*parts, body])))


Scripts = Callable[[str], Script]
"""Where a store gets a script by name: :func:`script`, or a test's variants of it."""


def script_names() -> tuple[str, ...]:
    """Every transition there is."""
    files = (entry.name for entry in _LUA.iterdir())
    return tuple(sorted(name.removesuffix(".lua") for name in files if name.endswith(".lua")))


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call of one script. decode: the server's reply (lists, bytes, ints) to an outcome."""

    name: str
    key: str
    args: tuple[Arg, ...]
    decode: Callable[[Any], T] = field(repr=False)


def text(value: object) -> str:
    """A reply's bytes as text; what is no UTF-8 is shown, not refused."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
