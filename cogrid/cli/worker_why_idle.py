"""``cogrid worker why-idle``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_line, print_table
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.rules.idle import Idle


@click.command()
@click.argument("worker")
@answers("cogrid.rules.idle:Idle")
@with_json
@with_config
def command(config: Config, worker: str, as_json: bool) -> int:
    """Why a worker has nothing to do: what keeps it from work, and why each queue is not for it.

    Exit code 3 when something should be done about it.

    \b
    cogrid worker why-idle esxi
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.workers import idle

    store = open_view(config)
    found = idle(store, config.limits, config.routing, worker)
    return answer(store, found, as_json, _print, Exit.FINDINGS if found.wrong else Exit.OK)


def _print(found: Idle) -> None:
    print_line(found.what)
    for reason in found.reasons:
        print_line(f"  {reason}")
    if found.mend:
        print_line(f"  mend: {found.mend}")
    if found.blocked:
        print_table(
            "What waits and is not taken",
            ("QUEUE", "TASKS", "MODEL", "NEXT", "WHY NOT"),
            ((each.queue, each.tasks, each.model, each.task, each.why) for each in found.blocked),
            ("TASKS",),
        )
