"""Which machines a command goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from cogrid.model.host import Host
from cogrid.model.worker import Worker

Places = frozenset[tuple[str, int]]
"""Where a name leads from here: addresses and ports; none where nobody here knows the name."""


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


def told_address(said: str) -> str:
    """An IP address that a machine tells of itself, as other machines may use it; "" for one that
    leads nowhere from there: loopback, one of a single link, and what is no address."""
    try:
        found = ip_address(said)
    except ValueError:
        return ""
    if found.version == 6:
        found = found.ipv4_mapped or found
    of_link = found.version == 6 and found.is_link_local
    of_none = found.is_loopback or found.is_unspecified or found.is_multicast
    return "" if of_link or of_none else str(found)


def spellings(wanted: Iterable[Host | Worker]) -> tuple[str, ...]:
    """Every name and address by which these may be reached, each once: what ``machines`` must know
    the places of."""
    found: dict[str, None] = {}
    for each in wanted:
        said = (
            (each.address,) if isinstance(each, Host) else (each.host, told_address(each.address))
        )
        found |= dict.fromkeys(name for name in said if name)
    return tuple(found)


def machines(wanted: Iterable[Host | Worker], leads: Mapping[str, Places]) -> tuple[Host, ...]:
    """The hosts, and the machine of each worker: by the name that it has told where that leads
    anywhere from here, else by its address. A machine that was met already, by whatever name, is
    left out. A worker that has told no address has that of another on a host of this name."""
    wanted = tuple(wanted)
    addresses = {
        worker.host: address
        for worker in wanted
        if isinstance(worker, Worker) and (address := told_address(worker.address))
    }
    found: dict[Host, None] = {}
    met: set[tuple[str, int]] = set()
    for each in wanted:
        host = each if isinstance(each, Host) else _machine(each, addresses, leads)
        places = leads.get(host.address) or {(host.address, 0)}
        if isinstance(each, Host) or not met & places:
            found[host] = None
        met |= places
    return tuple(found)


def _machine(worker: Worker, addresses: Mapping[str, str], leads: Mapping[str, Places]) -> Host:
    address = told_address(worker.address) or addresses.get(worker.host, "")
    known = leads.get(worker.host) or not address
    return Host(worker.host if known else address, id=worker.id)
