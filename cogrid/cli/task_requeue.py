"""``cogrid task requeue``."""

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
@with_choice(("running", "waiting"))
@with_consent
@answers("cogrid.ops.deeds:Deeds")
@with_json
@with_config
def command(config: Config, choice: Choice, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Have tasks go again: one that runs is taken back from its worker and goes to another where
    there is one; one that waits for its next attempt need not wait. It counts as no attempt and no
    recovery. A task whose client has seen text already is left alone.

    \b
    cogrid task requeue cb305e3a
    cogrid task requeue --worker esxi --state running --dry-run
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.requeue import carry_out as requeue
    from cogrid.ops.requeue import plan_requeue

    store = open_store(config)
    plan = plan_requeue(store, choice, config.routing, config.limits)
    return carry_out(
        plan.deeds,
        "Have {} go again?",
        lambda: requeue(store, choice, plan, config.limits),
        dry_run,
        yes,
        as_json,
    )
