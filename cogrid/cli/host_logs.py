"""``cogrid host logs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.access import with_access
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.hosts_option import with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_row
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.ops.hosts.logs import LogLine, LogWishes, Trouble
    from cogrid.remote.access import Access


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Then those that come, until interrupted.")
@click.option(
    "--lines", "-n", type=click.IntRange(min=1), default=100, metavar="N",
    help="The last so many of each host (100).",
)  # fmt: skip
@click.option("--since", type=seconds, metavar="DURATION", help="None older, e.g. 10m, 2h, 7d.")
@click.option(
    "--unit", "units", multiple=True, metavar="NAME",
    help="Of this unit, e.g. ollama.service; else of all of cogrid's.",
)  # fmt: skip
@answers(
    "cogrid.ops.hosts.logs:Logs",
    "With --follow, one line each: LogLine, or Trouble.",
)
@with_json
@with_access
@with_config
@with_hosts
def command(
    config: Config,
    hosts: tuple[Host, ...],
    access: Access,
    follow: bool,
    lines: int,
    since: float | None,
    units: tuple[str, ...],
    as_json: bool,
) -> int:
    """What the units say on all hosts, by time, with the host in front.

    Times are those of each host's clock. With --follow a host that is lost is told, and asked again
    until it is back; the others go on.

    \b
    cogrid host logs --since 10m
    cogrid host logs --follow --host 192.168.0.41 --host ai-core
    cogrid host logs --unit ollama.service --lines 20

    \b
    Exit code: 5 the journal of some host could not be read.
    """
    from cogrid.cli.fleet import meant_hosts
    from cogrid.ops.hosts.logs import LogWishes, read_logs

    machines = meant_hosts(config, access, hosts)
    wishes = LogWishes(lines, since, units or LogWishes().units)
    if follow:
        _follow(machines, access, wishes, as_json)
    found = read_logs(machines, access, wishes)
    if as_json:
        print_json(found)
    else:
        for line in found.lines:
            _print(line)
        for trouble in found.troubles:
            _say(trouble)
        if not found.lines and not found.troubles:
            note("the journals have no line of them")
    return Exit.SOME_HOSTS if found.troubles else Exit.OK


def _follow(machines: tuple[Host, ...], access: Access, wishes: LogWishes, as_json: bool) -> None:
    """Until it is interrupted."""
    from cogrid.ops.hosts.follow import Follower
    from cogrid.ops.hosts.logs import LogLine

    with Follower(machines, access, wishes) as follower:
        for heard in follower.heard():
            if as_json:
                print_json(heard)
            elif isinstance(heard, LogLine):
                _print(heard)
            else:
                _say(heard)


def _print(line: LogLine) -> None:
    print_row((line.host, line.at, line.unit, line.text))


def _say(trouble: Trouble) -> None:
    note(f"{trouble.message}{f' → {trouble.hint}' if trouble.hint else ''}")
