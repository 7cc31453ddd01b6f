"""Which host is meant: ``user@host:port`` as an operator writes it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from cogrid.errors import UsageError

_FORMS = "write it as host, user@host:port, [2001:db8::1]:2222 or an alias of your ssh_config"


@dataclass(frozen=True, slots=True)
class Target:
    """A host as it was named; what it leaves open, OpenSSH's configuration decides.

    name: alias, host name or address, IPv6 without brackets. user: "" if not given. port: 0 if not
    given.
    """

    name: str
    user: str = ""
    port: int = 0

    @property
    def shown(self) -> str:
        """The same in one spelling, IPv6 in brackets; ``parse_target`` reads it back."""
        name = bracketed(self.name)
        return (
            (f"{self.user}@" if self.user else "") + name + (f":{self.port}" if self.port else "")
        )


def bracketed(name: str) -> str:
    """IPv6 addresses in brackets, so that a port can follow; everything else unchanged."""
    return f"[{name}]" if ":" in name else name


def parse_target(text: str) -> Target:
    """Reads ``host``, ``user@host:port``, ``ssh://…``, and IPv6 with or without brackets.

    UsageError where it cannot be a host. One address has one spelling, so that two ways to write it
    are one host.
    """
    user, _, place = text.strip().removeprefix("ssh://").rstrip("/").rpartition("@")
    name, port = _split(place, text)
    if not name or any(_foul(part) for part in (name, user)) or text.strip().startswith("@"):
        raise UsageError(f"{text!r} is not a host", _FORMS)
    return Target(name=_one_spelling(name, text), user=user, port=port)


def _split(place: str, text: str) -> tuple[str, int]:
    if place.startswith("["):
        name, closed, rest = place[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise UsageError(f"{text!r} is not a host", _FORMS)
        return name, _port(rest[1:], text) if rest else 0
    if place.count(":") == 1:
        name, _, port = place.partition(":")
        return name, _port(port, text)
    return place, 0


def _port(word: str, text: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < int(word) < 65536):
        raise UsageError(
            f"{word!r} in {text!r} is not a port", "a port is a number from 1 to 65535"
        )
    return int(word)


def _foul(part: str) -> bool:
    """Whether a word would be taken for an option, or holds what no name has."""
    return part.startswith("-") or any(c.isspace() or not c.isprintable() for c in part)


def _one_spelling(name: str, text: str) -> str:
    if ":" not in name:
        return name
    try:
        return str(ipaddress.IPv6Address(name))
    except ValueError:
        raise UsageError(f"{text!r} is not a host", _FORMS) from None
