"""``cogrid dead``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "list": ("cogrid.cli.dead_list", "Tasks that were given up."),
    "retry": ("cogrid.cli.dead_retry", "Try them again."),
    "purge": ("cogrid.cli.dead_purge", "Drop them."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Dead letters: tasks that were given up after too many recoveries, kept for seven days."""
