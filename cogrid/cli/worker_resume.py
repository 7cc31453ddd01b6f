"""``cogrid worker resume``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_json, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.drain import Resumed

ANSWERS = "15s"
"""A worker hears of it at once, or with its next renewal."""


@click.command()
@click.argument("worker")
@click.option(
    "--timeout", type=seconds, default=ANSWERS, metavar="DURATION", help="Wait so long (15s)."
)
@with_consent
@answers("cogrid.ops.drain:Resumed")
@with_json
@with_config
def command(
    config: Config, worker: str, timeout: float, dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Let a drained worker take work again.

    \b
    cogrid worker resume esxi
    """
    from cogrid.cli.connect import open_store
    from cogrid.model.worker import Health
    from cogrid.ops.drain import Resumed, plan_resume, resume, resumed

    store = open_store(config)
    plan = plan_resume(store, config.limits, worker)
    done: bool | None = None
    if not dry_run:
        ask(f"Let {plan.worker} take work again?", yes)
        resume(store, plan.worker)
        if plan.health is not Health.DEAD:
            done = resumed(store, plan.worker, timeout)
    result = Resumed(plan.worker, dry_run, plan.health, done)
    if as_json:
        print_json(result)
    else:
        print_line(_told(result))
    return Exit.FAILED if done is False else Exit.OK


def _told(result: Resumed) -> str:
    if result.dry_run:
        return f"{result.worker} ({result.health}) would take work again"
    if result.done is None:
        return f"{result.worker} is dead; it takes work again when it is back"
    if result.done:
        return f"{result.worker} takes work again"
    return f"{result.worker} has not answered yet; the wish stands"
