"""Which machines a command goes to."""

from __future__ import annotations

from collections.abc import Iterable

from cogrid.model.host import Host


def chosen(named: Iterable[str], every: bool, configured: tuple[Host, ...]) -> tuple[Host, ...]:
    """Those that were named, in order, each once; before them all of the configuration where every
    one is meant. A name that is a configured host's address or its worker's id means that one,
    with all that the configuration says of it."""
    found = dict.fromkeys(configured) if every else {}
    for name in named:
        known = [host for host in configured if name in (host.address, host.id)]
        found |= dict.fromkeys(known or [Host(name)])
    return tuple(found)


def listed(text: str) -> tuple[str, ...]:
    """The hosts in a file: one a line; empty lines and what follows a # count for nothing."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)
