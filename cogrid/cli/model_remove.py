"""``cogrid model remove``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.chores import have_done
from cogrid.cli.consent import with_consent
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.argument("model")
@click.option(
    "--worker", "workers", metavar="NAME", multiple=True, required=True, help="Who is to lose it."
)
@click.option("--force", is_flag=True, help="Also where nobody else can serve it then.")
@with_consent
@answers(
    "cogrid.ops.chores:Chores",
    "{progress: …}: one line each time a chore has got on (the fields of a chore).",
)
@with_json
@with_config
def command(
    config: Config,
    model: str,
    workers: tuple[str, ...],
    force: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Have workers throw a model away.

    \b
    cogrid model remove gemma3:1b --worker esxi --dry-run
    cogrid model remove gemma3:1b --worker esxi --force
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.chores import plan_remove
    from cogrid.ops.unlearn import unlearn

    store = open_store(config)
    wanted = plan_remove(store, config.limits, model, workers, force)
    code = have_done(store, wanted, f"Remove {model}?", dry_run, yes, as_json)
    if code == Exit.OK and not dry_run:
        unlearn(store, config.limits, wanted[0].model, {each.worker for each in wanted})
    return code
