"""``cogrid dead``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Dead letters: tasks that were given up after too many recoveries, kept for seven days."""
