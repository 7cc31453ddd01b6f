"""``cogrid queue list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_table
from cogrid.cli.task_show import as_word

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.queues import QueueFacts, Queues


@click.command()
@answers("cogrid.ops.queues:Queues")
@with_json
@with_config
def command(config: Config, as_json: bool) -> int:
    """Every queue that holds something: how deep, how old, how quick, and who serves it.

    \b
    cogrid queue list
    cogrid queue list --json | jq '.queues[] | select(.servable | not)'
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.queues import queues

    store = open_view(config)
    return answer(store, queues(store, config.limits), as_json, _print)


def _print(found: Queues) -> None:
    print_table(
        "Queues",
        ("QUEUE", "DEPTH", "OLDEST", "A MINUTE", "EMPTY IN", "USERS", "SERVABLE", "SERVED BY"),
        map(_row, found.queues),
        ("USERS", "EMPTY IN", "A MINUTE"),
    )


def _row(queue: QueueFacts) -> tuple[object, ...]:
    return (
        queue.name,
        queue.depth,
        shown(queue.oldest_s),
        queue.drained_per_min,
        shown(queue.wait_s),
        queue.users,
        as_word(queue.servable),
        ", ".join(queue.served_by),
    )
