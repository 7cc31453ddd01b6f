"""``cogrid events``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_row, print_table
from cogrid.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogrid.config import Config
    from cogrid.ops.events import EventList, EventRow

COLUMNS = ("AT", "KIND", "TASK", "WORKER", "REASON")


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Then those that come, until interrupted.")
@click.option("--task", default="", metavar="ID", help="Only of this task.")
@click.option("--worker", default="", metavar="NAME", help="Only of this worker.")
@click.option("--kind", "kinds", multiple=True, metavar="WORD", help="Only such, e.g. reaped.")
@click.option("--since", type=seconds, metavar="DURATION", help="None older, e.g. 10m, 2h, 7d.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=100, metavar="N", help="The last so many (100)."
)
@answers(
    "cogrid.ops.events:EventList",
    "cogrid.ops.events:EventRow",
    "With --follow: one EventRow a line.",
)
@with_json
@with_config
def command(
    config: Config,
    follow: bool,
    task: str,
    worker: str,
    kinds: tuple[str, ...],
    since: float | None,
    limit: int,
    as_json: bool,
) -> int:
    """What has happened on the grid, the latest last: every transition of tasks and workers.

    \b
    cogrid events --follow
    cogrid events --kind reaped --kind moved --since 1h
    cogrid events --task cb305e3a --json
    """
    import time

    from cogrid.cli.connect import open_store, open_view
    from cogrid.ops.events import Filter, events, resolved
    from cogrid.ops.events import follow as follow_events

    # What comes cannot be waited for where it may not be read, so a follower is told at once.
    store = open_store(config) if follow else open_view(config)
    wanted = resolved(store, Filter(task, worker, kinds, since))
    if follow:
        _follow(follow_events(store, wanted, limit, time.sleep), as_json)
        return Exit.OK
    return answer(store, events(store, wanted, limit), as_json, _print)


def _print(found: EventList) -> None:
    print_table("Events", COLUMNS, map(_row, found.events), ())
    if found.cut:
        note("there are more: --limit shows them, as far as the log goes back")


def _follow(found: Iterable[EventRow], as_json: bool) -> None:
    """A line each, as it comes: the width of columns that are not known yet cannot be laid out."""
    for event in found:
        if as_json:
            print_json(event)
        else:
            print_row(_row(event))


def _row(event: EventRow) -> tuple[object, ...]:
    return event.at, event.kind, event.task, event.worker, event.reason
