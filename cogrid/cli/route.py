"""``cogrid route``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.argument("prompt")
@click.option("--model", default="auto", metavar="NAME", help="The model asked for (auto).")
@click.option("--worker", default="", metavar="NAME", help="The worker asked for.")
@answers("cogrid.ops.route:Routed")
@with_json
@with_config
def command(config: Config, prompt: str, model: str, worker: str, as_json: bool) -> int:
    """Where a prompt would go now, and every reason; nothing is sent.

    \b
    cogrid route "please translate this"
    cogrid route --model gemma3:1b --worker esxi hello
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.route import route_prompt

    found = route_prompt(open_store(config), config.routing, config.limits, prompt, model, worker)
    if as_json:
        print_json(found)
    else:
        for reason in found.reasons:
            print_line(reason)
        if found.queue:
            who = ", ".join(found.workers)
            print_line(f"→ {found.queue} (model {found.model}, domain {found.domain}, by {who})")
        else:
            note(f"cogrid: {found.error}")
            if found.near:
                note(f"  → did you mean {', '.join(found.near)}?")
    return Exit.OK if found.queue else Exit.FAILED
