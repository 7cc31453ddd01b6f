"""``cogrid dead retry``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.choice import carry_out, with_choice
from cogrid.cli.consent import with_consent
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.chosen import Choice


@click.command()
@with_choice()
@with_consent
@answers("cogrid.ops.deeds:Deeds")
@with_json
@with_config
def command(config: Config, choice: Choice, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Try dead letters again, under their ids, as if they had been submitted with POST /task: their
    clients have gone, the answer is kept and read by id.

    \b
    cogrid dead retry cb305e3a
    cogrid dead retry --model gemma3:1b --dry-run
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.requeue import carry_out as retry
    from cogrid.ops.requeue import plan_retry

    store = open_store(config)
    plan = plan_retry(store, choice, config.routing, config.limits)
    return carry_out(
        plan.deeds,
        "Try {} again?",
        lambda: retry(store, choice, plan, config.limits),
        dry_run,
        yes,
        as_json,
    )
