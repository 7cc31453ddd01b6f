"""``cogrid task purge``."""

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
@with_choice(("done", "failed", "cancelled", "expired"))
@with_consent
@answers("cogrid.ops.deeds:Deeds")
@with_json
@with_config
def command(config: Config, choice: Choice, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Drop tasks that have ended before their time; by themselves they go after keep_s.

    \b
    cogrid task purge --state failed
    cogrid task purge --user ada --all --yes
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.purge import chosen_to_purge, plan_purge, purge_all

    store = open_store(config)
    chosen = chosen_to_purge(store, choice, dead=False)
    return carry_out(
        plan_purge(chosen, dead=False),
        "Drop {} for good?",
        lambda: purge_all(store, choice, chosen, False, config.limits),
        dry_run,
        yes,
        as_json,
    )
