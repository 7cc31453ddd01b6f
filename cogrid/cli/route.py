"""``cogrid route``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.route import Routed


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
    from cogrid.cli.connect import open_view
    from cogrid.ops.route import route_prompt

    store = open_view(config)
    found = route_prompt(store, config.routing, config.limits, prompt, model, worker)
    return answer(store, found, as_json, _print, Exit.OK if found.queue else Exit.FAILED)


def _print(found: Routed) -> None:
    for reason in found.reasons:
        print_line(reason)
    if found.queue:
        who = ", ".join(found.workers)
        print_line(f"→ {found.queue} (model {found.model}, domain {found.domain}, by {who})")
        return
    note(f"cogrid: {found.error}")
    if found.near:
        note(f"  → did you mean {', '.join(found.near)}?")
