"""``cogrid sanity``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.access import with_access
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.hosts_option import with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_heading, print_json, print_line, print_table
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.ops.sanity.report import HostSanity, Sanity
    from cogrid.remote.access import Access


@click.command()
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@click.option(
    "--timeout",
    type=seconds,
    default="20s",
    metavar="DURATION",
    help="For the models of one worker to give one token each (20s).",
)
@click.option(
    "--trial",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Instead: start the installed worker for so long, up to the end of its probes.",
)
@answers(
    "cogrid.ops.sanity.report:Sanity",
    "With --trial:",
    "cogrid.ops.sanity.try_out:Trials",
)
@with_json
@with_access
@with_config
@with_hosts
def command(
    config: Config,
    hosts: tuple[Host, ...],
    access: Access,
    workers: tuple[str, ...],
    timeout: float,
    trial: float | None,
    as_json: bool,
) -> int:
    """Ask machines over SSH whether they are fit for what runs on them, and say what mends them.

    systemd and the unit, Python and cogrid, clock, memory and disk; and, asked from there: the
    engine, each model for one token, and Redis. Without a name: every [[host]], else every host
    that a worker of the grid has told; with --host a WORKER is one of that host's. Nothing is
    changed there.

    With --trial: the worker that is installed there, as a unit or only as a program, is started
    beside the one that runs, up to the end of its probes. Shown are what it says, its exit code and
    what that means; it takes no name, registers nothing and claims nothing.

    \b
    cogrid sanity
    cogrid sanity esxi
    cogrid sanity --host 192.168.0.41 --json
    cogrid sanity --trial 10 --host 192.168.0.41

    \b
    Exit codes: 3 something was found, 5 some hosts could not be asked.
    """
    from cogrid.cli.fleet import meant_hosts, redis_for_hosts, settings_for_hosts
    from cogrid.ops.sanity.ask import Wishes
    from cogrid.ops.sanity.report import sanity

    machines = meant_hosts(config, access, hosts, workers)
    redis = redis_for_hosts(config)
    wishes = Wishes(trial or timeout, workers, redis, settings_for_hosts(config, redis))
    if trial is not None:
        from cogrid.cli.sanity_trial import show_trials

        return show_trials(machines, access, wishes, as_json)
    found = sanity(machines, access, wishes)
    if as_json:
        print_json(found)
    else:
        _print(found)
    return found.exit_code


def _print(found: Sanity) -> None:
    print_table(
        "Sanity",
        ("HOST", "AREA", "VERDICT", "SUBJECT", "WHAT", "MEND"),
        (
            (host.host, check.area, check.verdict, check.subject, check.what, check.mend)
            for host in found.hosts
            for check in host.checks
        ),
        ("SUBJECT",),
    )
    for host in found.hosts:
        _print_evidence(host)
    count = sum(len(host.findings) for host in found.hosts)
    note(f"{counted(count, 'finding')} on {counted(len(found.hosts), 'host')}")


def _print_evidence(host: HostSanity) -> None:
    """What a host itself says of what is wrong there."""
    for check in host.findings:
        if check.evidence:
            print_heading(f"{host.host} {check.subject}")
            for line in check.evidence:
                print_line(f"  {line}")
