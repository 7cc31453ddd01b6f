"""``cogrid drift``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.access import with_access
from cogrid.cli.documents import answers
from cogrid.cli.findings import print_findings
from cogrid.cli.hosts_option import with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.remote.access import Access


@click.command()
@answers("cogrid.ops.hosts.drift:Drift")
@with_json
@with_access
@with_config
@with_hosts
def command(config: Config, hosts: tuple[Host, ...], access: Access, as_json: bool) -> int:
    """What differs between hosts: versions of cogrid and of engines, models by their digest, and
    the text of the units, but for what was chosen for each.

    \b
    cogrid drift
    cogrid drift --host 192.168.0.41 --host ai-core --json

    \b
    Exit codes: 3 something differs, 5 some hosts could not be asked.
    """
    from cogrid.cli.fleet import meant_hosts, read_grid
    from cogrid.ops.hosts.drift import drift

    machines = meant_hosts(config, access, hosts)
    found = drift(machines, access, read_grid(config))
    if as_json:
        print_json(found)
        return found.exit_code
    if found.findings or not found.troubles:
        print_findings(found.findings, "nothing differs between them")
    for trouble in found.troubles:
        note(f"{trouble.message}{f' → {trouble.hint}' if trouble.hint else ''}")
    return found.exit_code
