"""``cogrid model forget``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.unlearn import Unlearned


@click.command()
@click.argument("model")
@with_consent
@answers("cogrid.ops.unlearn:Unlearned")
@with_json
@with_config
def command(config: Config, model: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Strike off a model that no worker has any longer: spof asks for it no more.

    Refused where a worker still has it, or a task waits for it. A worker that brings it again makes
    it known again.

    \b
    cogrid model forget gemma3:1b --dry-run
    cogrid model forget gemma3:1b
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.unlearn import forget, plan_forget

    store = open_store(config)
    found = plan_forget(store, model)
    if not as_json:
        _say(found, print_line if dry_run else note)
    if not dry_run:
        ask(f"Forget {found.model}?", yes)
        found = forget(store, config.limits, found)
    if as_json:
        print_json(found)
    elif found.done:
        print_line(f"{found.model} is forgotten")
    return Exit.OK


def _say(found: Unlearned, say: Callable[[object], None]) -> None:
    last = f", its last was there {shown(found.last_home_s)} ago" if found.last_home_s else ""
    say(f"no worker has {found.model}{last}; no task waits for it")
