"""``cogrid model pull``."""

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
@click.option(
    "--worker", "workers", metavar="NAME", multiple=True, required=True, help="Who is to get it."
)
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
    """Have workers pull a model, probe it, and serve it from then on.

    A worker whose configuration lists its models serves it beside those, also after a restart.
    Interrupted, the pulls are cancelled; what an engine has got by then it keeps for the next try.
    A pull that has not got on for 60 s fails.

    \b
    cogrid model pull gemma3:1b --worker ai-core
    cogrid model pull gemma3:1b --worker ai-core --worker nas --yes
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.chores import plan_pull

    store = open_store(config)
    wanted = plan_pull(store, config.limits, model, workers)
    return have_done(store, wanted, f"Pull {model}?", dry_run, yes, as_json)
