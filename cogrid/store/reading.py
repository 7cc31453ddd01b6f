"""Readings: a generator that yields commands, one round trip a yield, and returns a value.

A sync or an async store drives it; so each reading, too, is written once. A command that the
server refuses comes back as the exception, and the reading decides what that means.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from cogrid.store.script import Arg, text

T = TypeVar("T")
Command = tuple[Arg, ...]
Reading = Generator[list[Command], list[Any], T]


def good(reply: Any, default: Any = None) -> Any:
    """The reply, or the default where the server refused the command."""
    return default if isinstance(reply, Exception) else reply


def certain(reply: Any) -> Any:
    """The reply; a refusal is raised."""
    if isinstance(reply, Exception):
        raise reply
    return reply


def hash_of(reply: Any) -> dict[str, str]:
    """A hash's reply as text: RESP2 gives a flat list, RESP3 a map."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {text(name): text(value) for name, value in pairs}


def scored(reply: Any) -> list[tuple[str, float]]:
    """Members and scores in the order of the reply: RESP2 gives a flat list, RESP3 pairs."""
    if reply and not isinstance(reply[0], list | tuple):
        reply = zip(reply[::2], reply[1::2], strict=True)
    return [(text(member), float(score)) for member, score in reply]


def scores(reply: Any) -> dict[str, int]:
    """Members and whole scores, such as stamps in Redis ms."""
    return {name: int(score) for name, score in scored(reply)}


def number(fields: Mapping[str, str], name: str) -> int:
    """A field of a hash as a whole number; 0 where it is none."""
    said = fields.get(name, "")
    return int(said) if said.lstrip("-").isdigit() else 0
