"""``cogrid worker forget``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.cli.waited import wait
from cogrid.cli.went import print_went, say_leaving
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.forget import Forgotten, Left
    from cogrid.rules.leaving import Leaving
    from cogrid.store.client import Store

MOVED = "60s"
"""A reaper moves tasks within seconds, and within two leases when it was disturbed."""


@click.command()
@click.argument("worker")
@click.option("--force", is_flag=True, help="Also a ghost: what it still says is refused.")
@click.option(
    "--timeout", type=seconds, default=MOVED, metavar="DURATION", help="Wait so long (60s)."
)
@with_consent
@answers("cogrid.ops.forget:Forgotten")
@with_json
@with_config
def command(
    config: Config,
    worker: str,
    force: bool,
    timeout: float,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Strike off a worker that is gone. What it still holds goes to others first.

    With --force also a ghost, one that renews its lease and takes no work: its process is void and
    ends by itself; where a service starts it again, the new one has the name.

    \b
    cogrid worker forget esxi
    cogrid worker forget esxi --force --dry-run
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.forget import Forgotten, plan_forget

    store = open_store(config)
    plan = plan_forget(store, config.limits, worker, force)
    if dry_run:
        result = Forgotten(plan.worker, True, force, None, False, False, plan)
        print_json(result) if as_json else say_leaving(plan, print_line)
        return Exit.OK
    if not as_json:
        say_leaving(plan, note)
    ask(f"Forget {plan.worker}?", yes)
    result = _forget(store, config, plan, force, timeout, as_json)
    if as_json:
        print_json(result)
    else:
        _print(result)
    return Exit.OK if result.done else Exit.FAILED


def _forget(
    store: Store, config: Config, plan: Leaving, force: bool, timeout_s: float, quiet: bool
) -> Forgotten:
    from cogrid.ops.forget import Forgotten, forget
    from cogrid.ops.operator import operator
    from cogrid.ops.trail import Trail

    trail = Trail(store, plan.worker)
    steps = forget(store, config.limits, plan, force)
    left = wait(steps, _told, timeout_s, quiet)
    tasks = trail.went()
    return Forgotten(plan.worker, False, force, operator(), left.struck, left.over, plan, tasks)


def _told(left: Left) -> str:
    if left.over:
        return "nothing is left of it"
    word = "struck off" if left.struck else "not struck off yet"
    hint = f" ({left.hint})" if left.hint else ""
    return f"{word}; {left.runs} still to be taken back, {left.waiting} to be moved{hint}"


def _print(result: Forgotten) -> None:
    if result.done:
        print_line(f"{result.worker} is forgotten")
    elif result.struck:
        print_line(f"{result.worker} is struck off, but not all its tasks have gone on yet")
    else:
        print_line(f"{result.worker} still holds tasks: --force strikes it off before they go")
    print_went(result.tasks)
