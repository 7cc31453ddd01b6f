"""``cogrid host``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "list": ("cogrid.cli.host_list", "Hosts, and what cogrid runs on each."),
    "restart": ("cogrid.cli.host_act:restart", "Restart units, their workers drained first."),
    "stop": ("cogrid.cli.host_act:stop", "Stop units, their workers drained first."),
    "start": ("cogrid.cli.host_act:start", "Start units, also those that systemd gave up."),
    "logs": ("cogrid.cli.host_logs", "The journals of all hosts as one."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """The machines of the fleet, reached over SSH, all at once. Without a name: every [[host]] of
    the configuration, else every host that a worker of the grid has told."""
