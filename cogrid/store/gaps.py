"""What our user may not read: named once each, and read as empty, so that the rest can be shown.

For commands that only look. Whoever acts must not act on half of what there is: there a refusal
stays an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from redis.exceptions import NoPermissionError

from cogrid.errors import UnreachableError
from cogrid.store.refusal import refuses_command

READS_KEYS = frozenset(
    {
        "EXISTS", "GET", "HGET", "HGETALL", "HMGET", "PTTL", "SCARD", "SMEMBERS", "SRANDMEMBER",
        "STRLEN", "TYPE", "XRANGE", "XREVRANGE", "ZCARD", "ZRANGE", "ZRANK", "ZSCAN", "ZSCORE",
    }
)  # fmt: skip
"""Commands that name one key, as their first word."""
KEYLESS = frozenset({"INFO", "SCAN", "TIME"})

READ, WRITE = "%R~", "~"
"""What stands before a key's pattern in an ACL."""
ASKED = re.compile(r"([A-Z]+) (\S.*)", re.DOTALL)
"""A script's own refusal: the right and the key (lua/include/check.lua)."""

_NO_MEMBERS = ("HGETALL", "SMEMBERS", "SRANDMEMBER", "XRANGE", "XREVRANGE", "ZRANGE")
_NOTHING: dict[str, Any] = {
    **dict.fromkeys(_NO_MEMBERS, ()),
    **dict.fromkeys(("EXISTS", "SCARD", "STRLEN", "ZCARD"), 0),
    **dict.fromkeys(("GET", "HGET", "ZRANK", "ZSCORE"), None),
    **dict.fromkeys(("SCAN", "ZSCAN"), (b"0", ())),
    "INFO": b"",
    "PTTL": -1,
    "TYPE": b"none",
}


class Part(StrEnum):
    """A part of the grid that can be hidden from us: a pattern of keys, or what the server itself
    tells."""

    WORKERS = "worker:*"
    LEASES = "grid:workers"
    QUEUED = "tasks:*"
    TURNS = "turns:*"
    RATES = "rate:*"
    QUEUES = "grid:queues"
    TASKS = "task:*"
    OPEN = "grid:due"
    CLIENTS = "grid:clients"
    ENDED = "grid:finished"
    DEAD = "grid:dead"
    MODELS = "grid:models"
    EVENTS = "grid:events"
    REAPER = "grid:reaper"
    TOTALS = "grid:totals"
    API_KEYS = "grid:keys"
    USAGE = "usage:*"
    LIMITS = "limit:*"
    WAKES = "wake:*"
    CLOCK = "TIME"
    FACTS = "INFO"
    LEFT_OVER = "SCAN"


EXTRAS = frozenset({Part.API_KEYS, Part.FACTS, Part.LEFT_OVER})
"""Answers are whole without these: labels of keys, facts of the server, hashes left over."""
FLEET = frozenset({Part.WORKERS, Part.LEASES, Part.REAPER})
"""Without one of these it cannot be told how a worker is: after a disturbance the reaper says from
when on a silent one is a ghost."""
LISTS = frozenset({Part.OPEN, Part.ENDED, Part.DEAD})
"""Each task stands in one of these."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A part that our user may not read, and the ACL line that lets it."""

    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.what}: {self.mend}"


@dataclass(frozen=True, slots=True)
class Lack:
    """commands: rights to run them. mark: before the key's pattern, "" where that is granted. The
    server looks at commands first, so what one lacks may show only when the other is granted."""

    part: Part
    commands: frozenset[str] = frozenset()
    mark: str = ""

    def __or__(self, other: Lack) -> Lack:
        return Lack(self.part, self.commands | other.commands, self.mark or other.mark)


class HiddenError(UnreachableError):
    """What was asked for is hidden from our user. problems: where it is everything."""

    def __init__(self, message: str, hint: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint)
        self.problems = problems


class Gaps:
    """Gathers what is hidden. user: ours on the server; where: the server's address."""

    def __init__(self, user: str, prefix: str, where: str) -> None:
        self._user = user
        self._prefix = prefix
        self._where = where
        self._lacks: dict[Part, Lack] = {}
        self._answered = False

    def filled(self, commands: Sequence[tuple[Any, ...]], replies: Sequence[Any]) -> list[Any]:
        """The replies; in place of a refusal, what the command says where there is nothing. The
        clock is this machine's then."""
        return [
            self._filled(command, reply) for command, reply in zip(commands, replies, strict=True)
        ]

    def _filled(self, command: tuple[Any, ...], reply: Any) -> Any:
        name = str(command[0]).upper()
        if not is_reading(command) or not isinstance(reply, NoPermissionError):
            self._answered |= name in READS_KEYS and not isinstance(reply, Exception)
            return reply
        part = part_of(command, self._prefix)
        self._lacks[part] = self._lacks.get(part, Lack(part)) | lack_of(
            command, self._prefix, str(reply)
        )
        if name == "TIME":
            seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
            return [str(seconds).encode(), str(nanos // 1000).encode()]
        return [None] * (len(command) - 2) if name == "HMGET" else _NOTHING[name]

    @property
    def unread(self) -> frozenset[Part]:
        """Every part of which something is hidden."""
        return frozenset(self._lacks)

    @property
    def all(self) -> tuple[Gap, ...]:
        """The gaps in the order in which they were met."""
        return tuple(lacking(self._user, self._prefix, lack) for lack in self._lacks.values())

    def check(self) -> None:
        """HiddenError where nothing could be read at all."""
        if self._lacks and not self._answered:
            raise HiddenError(
                f"Redis at {self._where} shows nothing of this to user {self._user}",
                "docs/security.md has the lines that give a role its rights",
                tuple(map(str, self.all)),
            )

    def demand(self, parts: Iterable[Part]) -> None:
        """HiddenError where one of these is hidden: without it there is nothing to tell."""
        for part in parts:
            if part in self._lacks:
                gap = lacking(self._user, self._prefix, self._lacks[part])
                raise HiddenError(f"Redis at {self._where}: {gap.what}", gap.mend)


def is_reading(command: Sequence[Any]) -> bool:
    """True for a command of which it can be said what it reads."""
    return str(command[0]).upper() in READS_KEYS | KEYLESS


def part_of(command: Sequence[Any], prefix: str) -> Part:
    """What a command reads."""
    name = str(command[0]).upper()
    if name in KEYLESS:
        return Part(name)
    key = str(command[1]).removeprefix(prefix)
    return next(part for part in Part if fnmatchcase(key, part))


def lack_of(command: Sequence[Any], prefix: str, reply: str) -> Lack:
    """What a NOPERM says of one command: a reading, or EVALSHA and the key that the script is
    given. A script that has asked for a right itself says for which."""
    asked = ASKED.fullmatch(reply)
    if asked:
        name, key = asked.groups()
        return Lack(part_of((name, key), prefix), frozenset((name.lower(),)), WRITE)
    part = part_of(command, prefix)
    if refuses_command(reply):
        return Lack(part, frozenset((str(command[0]).lower(),)))
    return Lack(part, mark=READ if is_reading(command) else WRITE)


def lacking(user: str, prefix: str, lack: Lack) -> Gap:
    """A lack in words, with the line that mends it."""
    key = f"{prefix}{lack.part}"
    if lack.part in KEYLESS:
        clock = ", so the time is this machine's" if lack.part is Part.CLOCK else ""
        what = f"user {user} may not run {lack.part.lower()}{clock}"
    else:
        what = f"user {user} may not {'change' if lack.mark == WRITE else 'read'} {key}"
    rights = [f"+{command}" for command in sorted(lack.commands)]
    if lack.mark:
        rights.append(lack.mark + key)
    return Gap(what, f"ACL SETUSER {user} {' '.join(rights)}")
