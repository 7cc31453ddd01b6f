"""``cogrid task``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Tasks: requests on their way to an answer. The beginning of an id is enough where it is the
    only one."""
