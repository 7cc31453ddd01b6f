"""``cogrid config check``."""

from __future__ import annotations

import os

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_json
from cogrid.cli.output import print_json, print_line
from cogrid.errors import Exit


@click.command()
@click.argument("file", required=False)
@answers("cogrid.ops.settings:Checked")
@with_json
def command(file: str | None, as_json: bool) -> int:
    """Say everything that is wrong with the configuration, each with its line and key.

    Without FILE, what a command here would read: the usual files and the environment.

    \b
    cogrid config check
    cogrid config check /etc/cogrid/cogrid.toml
    """
    from cogrid.config import ConfigError, load
    from cogrid.ops.settings import Checked

    try:
        config = load(file, os.environ)
    except ConfigError as error:
        if not as_json:
            raise
        print_json(Checked(file, error.problems))
        return Exit.USAGE
    if as_json:
        print_json(Checked(config.file or None, ()))
    else:
        print_line(f"nothing is wrong ({config.file or 'no file; defaults and environment'})")
    return Exit.OK
