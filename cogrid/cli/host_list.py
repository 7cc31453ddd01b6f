"""``cogrid host list``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cogrid.cli.access import with_access
from cogrid.cli.documents import answers
from cogrid.cli.hosts_option import with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.ops.hosts.listing import HostRow
    from cogrid.remote.access import Access


@click.command()
@answers("cogrid.ops.hosts.listing:HostList")
@with_json
@with_access
@with_config
@with_hosts
def command(config: Config, hosts: tuple[Host, ...], access: Access, as_json: bool) -> int:
    """Hosts, and the units of cogrid on each: state, restarts, version, edited or as installed.

    \b
    cogrid host list
    cogrid host list --host 192.168.0.41 --json

    \b
    Exit code: 5 some hosts could not be asked.
    """
    from cogrid.cli.fleet import meant_hosts
    from cogrid.ops.hosts.listing import host_list

    found = host_list(meant_hosts(config, access, hosts), access)
    if as_json:
        print_json(found)
        return found.exit_code
    print_table(
        "Hosts",
        ("HOST", "NAME", "UNIT", "WORKER", "STATE", "RESTARTS", "VERSION", "FILE"),
        (row for host in found.hosts for row in _rows(host)),
        ("RESTARTS", "NAME", "FILE"),
    )
    for host in found.hosts:
        if host.error:
            note(f"{host.error}{f' → {host.hint}' if host.hint else ''}")
    return found.exit_code


def _rows(host: HostRow) -> Iterator[tuple[object, ...]]:
    if host.error or not host.units:
        yield (
            host.host,
            host.name,
            None,
            None,
            "not asked" if host.error else "no unit",
            *[None] * 3,
        )
    for unit in host.units:
        scope = "" if unit.scope == "system" else f" ({unit.scope})"
        yield (
            host.host, host.name, unit.unit + scope, unit.worker, unit.state, unit.restarts,
            unit.version, unit.origin,
        )  # fmt: skip
