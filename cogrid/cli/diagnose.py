"""``cogrid diagnose``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.findings import print_findings
from cogrid.cli.options import with_config, with_json

if TYPE_CHECKING:
    from cogrid.config import Config


@click.group()
def command() -> None:
    """What is wrong, the evidence in numbers, and the command that mends it.

    Nothing is changed. Exit code 3 when something was found.
    """


@command.command()
@with_json
@with_config
def ghosts(config: Config, as_json: bool) -> int:
    """Workers that look alive and are not: ghosts, dead ones that hold work, hashes left over.

    \b
    cogrid diagnose ghosts
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.diagnose import ghosts as find

    found = find(open_store(config), config.limits)
    return print_findings(found, as_json, "no ghosts: every worker that is registered works")
