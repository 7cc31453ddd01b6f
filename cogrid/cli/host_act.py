"""``cogrid host start``, ``stop`` and ``restart``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.access import with_access
from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.hosts_option import with_hosts
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line, print_table
from cogrid.errors import UnreachableError
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.model.host import Host
    from cogrid.ops.hosts.act import Done
    from cogrid.ops.hosts.acts import Plan
    from cogrid.remote.access import Access

Function = Callable[..., Any]


def _choosing(command: Function) -> Function:
    """Which units: ``--unit``, ``--role`` and ``--scope``."""
    for option in (
        click.option(
            "--scope", type=click.Choice(["system", "user"]), default="system",
            help="Whose manager runs the units that are named.",
        ),
        click.option(
            "--role", type=click.Choice(["worker", "coordinator", "reaper"]),
            help="Only units of this role.",
        ),
        click.option(
            "--unit", "units", multiple=True, metavar="NAME",
            help="Only this one; it need not be cogrid's, e.g. ollama.service.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def _at_once(command: Function) -> Function:
    return click.option(
        "--at-once", type=click.IntRange(min=1), default=32, metavar="N",
        help="So many hosts at a time; 1: one after the other (32).",
    )(command)  # fmt: skip


def _draining(command: Function) -> Function:
    command = click.option("--now", is_flag=True, help="Without draining the workers first.")(
        command
    )
    return click.option(
        "--timeout", type=seconds, default="5m", metavar="DURATION",
        help="A worker that still runs something after so long is left as it was (5m).",
    )(command)  # fmt: skip


@click.command()
@_choosing
@_at_once
@with_consent
@answers("cogrid.ops.hosts.act:Done")
@with_json
@with_access
@with_config
@with_hosts
def start(config: Config, at_once: int, **more: Any) -> int:
    """Start units, also those that systemd has given up; done when the grid has seen them poll.

    \b
    cogrid host start --host 192.168.0.41
    cogrid host start --host 192.168.0.41 --unit ollama.service
    """
    return _act("start", config, None, at_once, **more)


@click.command()
@_choosing
@_draining
@_at_once
@with_consent
@answers("cogrid.ops.hosts.act:Done")
@with_json
@with_access
@with_config
@with_hosts
def stop(config: Config, timeout: float, now: bool, at_once: int, **more: Any) -> int:
    """Stop units. A worker first finishes what it runs; what waits for it alone is moved.

    \b
    cogrid host stop --host 192.168.0.41 --dry-run
    cogrid host stop --host 192.168.0.41 --role worker --timeout 10m --yes
    """
    return _act("stop", config, None if now else timeout, at_once, drains=not now, **more)


@click.command()
@_choosing
@_draining
@_at_once
@with_consent
@answers("cogrid.ops.hosts.act:Done")
@with_json
@with_access
@with_config
@with_hosts
def restart(config: Config, timeout: float, now: bool, at_once: int, **more: Any) -> int:
    """Restart units. A worker first finishes what it runs; done when the grid has seen it poll.

    \b
    cogrid host restart --all --at-once 1
    cogrid host restart --host 192.168.0.41 --unit cogrid-worker@esxi.service --yes
    """
    return _act("restart", config, None if now else timeout, at_once, drains=not now, **more)


def _act(
    verb: str,
    config: Config,
    drain_s: float | None,
    at_once: int,
    *,
    hosts: tuple[Host, ...],
    access: Access,
    units: tuple[str, ...],
    role: str | None,
    scope: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    drains: bool = False,
) -> int:
    from cogrid.cli.connect import open_store
    from cogrid.cli.fleet import meant_hosts
    from cogrid.ops.hosts.act import Timing, carry_out, would
    from cogrid.ops.hosts.acts import Choice, Verb, plan_acts

    machines = meant_hosts(config, access, hosts)
    grid = _grid(config, drains)
    plan = plan_acts(machines, access, Verb(verb), Choice(units, role or "", scope), grid)
    if dry_run and not as_json:
        _show_acts(plan)
    if dry_run or not plan.acts:
        return _print(would(plan, dry_run), as_json)
    if not as_json:
        _show(plan)
    ask(f"{verb.capitalize()} {counted(len(plan.acts), 'unit')}?", yes)
    say = note if not as_json else _silent
    store = (lambda: open_store(config)) if grid else None
    done = carry_out(plan, machines, access, store, config.limits, Timing(drain_s, at_once), say)
    return _print(done, as_json)


def _silent(_: str) -> None:
    return None


def _grid(config: Config, drains: bool) -> Any:
    """What the workers have to do. Without Redis nothing can be drained; a start can do without."""
    from cogrid.cli.fleet import read_grid

    try:
        return read_grid(config), config.limits
    except UnreachableError as error:
        if drains:
            raise UnreachableError(
                f"{error.message.rstrip('.')}, so no worker can be drained",
                f"{error.hint}; --now does it without",
            ) from error
        note(f"{error.message.rstrip('.')}; nothing is asked of the grid")
        return None


def _show(plan: Plan) -> None:
    _show_acts(plan)
    for trouble in plan.troubles:
        note(f"not: {trouble.message}")


def _show_acts(plan: Plan) -> None:
    for act in plan.acts:
        holds = f", {act.worker} runs {act.runs}, {act.waiting} wait for it" if act.worker else ""
        note(f"{plan.verb} {act.unit} on {act.host} (it is {act.state}{holds})")
        if act.only_here:
            note(f"  meanwhile nobody serves {', '.join(act.only_here)}")


def _print(done: Done, as_json: bool) -> int:
    if as_json:
        print_json(done)
        return done.exit_code
    if done.acts:
        print_table(
            "Units",
            ("HOST", "UNIT", "WORKER", "WAS", "IS", "RESULT"),
            ((a.host, a.unit, a.worker, a.was, a.state, _result(done, a.done)) for a in done.acts),
        )
    for act in done.acts:
        for line in act.journal:
            print_line(f"  {line}")
        if act.error:
            note(f"{act.error}{f' → {act.hint}' if act.hint else ''}")
    for trouble in done.troubles:
        note(f"{trouble.message}{f' → {trouble.hint}' if trouble.hint else ''}")
    return done.exit_code


def _result(done: Done, fine: bool) -> str:
    return f"would {done.verb}" if done.dry_run else "done" if fine else "failed"
