"""``cogrid worker list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.options import narrowing, with_config, with_json
from cogrid.cli.worker_table import print_workers

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@narrowing
@answers("cogrid.ops.workers:Workers")
@with_json
@with_config
def command(config: Config, worker: str, pool: str, model: str, as_json: bool) -> int:
    """Workers, with their health, their slots, their models and what they run.

    \b
    cogrid worker list
    cogrid worker list --pool gpu --model gemma3:1b --json
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.status import Only
    from cogrid.ops.workers import workers

    store = open_view(config)
    found = workers(store, config.limits, Only(worker, pool, model))
    return answer(store, found, as_json, lambda found: print_workers(found.workers))
