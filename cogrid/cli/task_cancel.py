"""``cogrid task cancel``."""

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
@with_choice(("pending", "running", "waiting"))
@with_consent
@answers("cogrid.ops.deeds:Deeds")
@with_json
@with_config
def command(config: Config, choice: Choice, dry_run: bool, yes: bool, as_json: bool) -> int:
    """End tasks that are open: they leave their queue, and a run is stopped at its engine.

    \b
    cogrid task cancel cb305e3a
    cogrid task cancel --model gemma3:1b --state pending --older-than 10m
    cogrid task cancel --user nightly-batch --dry-run
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.cancel import cancel_all, chosen_to_cancel, plan_cancel

    store = open_store(config)
    chosen = chosen_to_cancel(store, choice)
    return carry_out(
        plan_cancel(chosen),
        "Cancel {}?",
        lambda: cancel_all(store, choice, chosen),
        dry_run,
        yes,
        as_json,
    )
