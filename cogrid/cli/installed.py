"""How an installation is shown: what would be done, and what was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cogrid.cli.output import note, print_table
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.ops.install.fleet import HostInstall, Install
    from cogrid.ops.install.uninstall import HostUninstall, Uninstall

Print = Callable[[object], None]


def print_plans(plans: Install, say: Print) -> None:
    """Each host with its steps, its diff, and what speaks against it."""
    for host in plans.hosts:
        say(f"{host.host}: {' '.join(filter(None, (host.unit, host.state)))}")
        _print_plan(host, say)


def _print_plan(host: HostInstall, say: Print) -> None:
    # What is refused has no steps to consent to, and those after the refusal are guesses.
    for number, step in enumerate(() if host.objections else host.steps, start=1):
        say(f"  {number:>2}. {step}")
    if host.changes:
        for line in host.diff:
            say(f"      {line}")
    if host.variables and not host.objections:
        say(f"      variables: {', '.join(host.variables)}")
    for remark in host.notes:
        say(f"  note: {remark}")
    _print_refusal(host, say)


def _print_refusal(host: HostInstall | HostUninstall, say: Print) -> None:
    for objection in host.objections:
        say(f"  no: {objection.what}")
        say(f"      → {objection.cure}")
    if host.error:
        say(f"  no: {host.error}")
    if host.hint:
        say(f"      → {host.hint}")


def print_done(done: Install) -> None:
    """A row a host; below it why, where something was not done."""
    print_table(
        "Hosts",
        ("HOST", "UNIT", "STATE", "STEP", "TOOK"),
        (
            (
                host.host,
                host.unit,
                host.state,
                host.step,
                None if host.took_s is None else f"{host.took_s:.1f} s",
            )
            for host in done.hosts
        ),
        ("TOOK",),
    )
    for host in done.hosts:
        _print_trouble(host)
    failed = sum(bool(host.error or host.objections) for host in done.hosts)
    if failed:
        note(f"{counted(failed, 'host')} of {len(done.hosts)} not done")


def _print_trouble(host: HostInstall) -> None:
    for line in host.journal:
        note(f"{host.host}: | {line}")
    for objection in host.objections:
        note(f"{host.host}: {objection.what}")
        note(f"  → {objection.cure}")
    if host.error:
        at = f"{host.step}: " if host.step else ""
        note(f"{host.host}: {at}{host.error}")
    if host.hint:
        note(f"  → {host.hint}")


def print_removals(plans: Uninstall, say: Print) -> None:
    """Each host with what would be removed there, and what would stay."""
    for host in plans.hosts:
        say(f"{host.host}: {' '.join(filter(None, (host.unit, host.state)))}")
        for number, step in enumerate(host.steps, start=1):
            say(f"  {number:>2}. {step}")
        for left in host.left if host.steps else ():
            say(f"  stays: {left}")
        _print_refusal(host, say)


def print_removed(done: Uninstall) -> None:
    """A row a host; below it what stays, and why, and what was not done."""
    rows = ((host.host, host.unit, host.state, host.step) for host in done.hosts)
    print_table("Hosts", ("HOST", "UNIT", "STATE", "STEP"), rows)
    for host in done.hosts:
        for left in host.left:
            note(f"{host.host}: stays: {left}")
        if host.error:
            note(f"{host.host}: {host.step}: {host.error}" if host.step else host.error)
        if host.hint:
            note(f"  → {host.hint}")
