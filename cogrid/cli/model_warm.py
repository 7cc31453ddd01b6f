"""``cogrid model warm``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.chores import have_done
from cogrid.cli.consent import with_consent
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.argument("model")
@click.option("--worker", "workers", metavar="NAME", multiple=True, help="Only there.")
@with_consent
@answers(
    "cogrid.ops.chores:Chores",
    "{progress: …}: one line each time a chore has got on (the fields of a chore).",
)
@with_json
@with_config
def command(
    config: Config, model: str, workers: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Load a model into memory, so that the next request for it need not wait.

    On all workers that can serve it, unless some are named. It may push another model out.

    \b
    cogrid model warm gemma3:1b
    cogrid model warm gemma3:1b --worker esxi --yes
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.chores import plan_warm

    store = open_store(config)
    wanted = plan_warm(store, config.limits, model, workers)
    return have_done(store, wanted, f"Load {model}?", dry_run, yes, as_json)
