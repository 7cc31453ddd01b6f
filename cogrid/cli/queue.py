"""``cogrid queue``."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "list": ("cogrid.cli.queue_list", "Depth, oldest wait, drain rate, and who serves."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Queues: a worker's own (tasks:POOL:WORKER), or a model's (tasks:POOL:shared:MODEL)."""
