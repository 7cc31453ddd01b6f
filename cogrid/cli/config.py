"""``cogrid config``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "show": ("cogrid.cli.config_show", "Every setting, and where it comes from."),
    "check": ("cogrid.cli.config_check", "Everything that is wrong, at once."),
    "init": ("cogrid.cli.config_init", "Write a file to begin with."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """The configuration: a file, then the environment, then the command line."""
