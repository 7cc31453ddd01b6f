"""``cogrid explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_heading, print_line, print_prose, print_row

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.explain import Explanation, TakerRow, Wait
    from cogrid.ops.tasks import TaskFacts

HANG = 2
"""What goes on in the next line stands so far in."""
NAMED = 8
"""So many workers are named for one reason; --json has them all."""


@click.command()
@click.argument("task")
@answers("cogrid.ops.explain:Explanation")
@with_json
@with_config
def command(config: Config, task: str, as_json: bool) -> int:
    """The life of one task: what happened to it, and if it waits, for what and for how long.

    Also of a task that has ended: its hash is kept for ten minutes, the event log for longer.

    \b
    cogrid explain cb305e3a
    cogrid explain cb305e3a --json | jq '.wait.estimate'
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.explain import explain

    store = open_view(config)
    return answer(store, explain(store, task, config.limits), as_json, _print)


def _print(found: Explanation) -> None:
    task = found.task
    print_prose(f"task {found.id}: {found.now}", HANG)
    if task:
        print_line(f"model {task.model}, domain {task.domain}, user {task.user}, {task.band}")
        if task.why:
            print_prose(f"routed because: {task.why}", HANG)
    print_heading("Timeline")
    for moment in found.timeline:
        print_row((moment.at, f"+{moment.after_s:.1f} s", moment.what, moment.told))
    if not found.complete:
        note("the event log does not reach back to its beginning")
    if found.wait:
        _print_wait(found.wait)
    if task and not task.finished_at and found.takers is not None:
        _print_takers(task, found.takers)


def _print_wait(wait: Wait) -> None:
    print_heading("Waits")
    told = ", ".join(f"{each.tasks} of {each.user} ({each.band})" for each in wait.before)
    print_line(f"place {wait.place}" + (f", behind {told}" if told else ", it is next"))
    if wait.next_before:
        print_line(f"next before it: {', '.join(wait.next_before)}")
    if wait.estimate:
        each = wait.estimate
        print_line(
            f"estimate: claimed in about {shown(each.expected_s)} "
            f"({shown(each.least_s)} to {shown(each.most_s)})"
        )
    else:
        print_line("estimate: none, nothing was claimed from this queue in the last ten minutes")


def _print_takers(task: TaskFacts, takers: tuple[TakerRow, ...]) -> None:
    from cogrid.ops.explain import grouped

    print_heading("Workers")
    verb = "could take it over" if task.state == "running" else "may take it"
    able = [row for row in takers if row.takes]
    for why, workers in grouped(able):
        free = f" ({why})" if why else ", a slot is free"
        print_prose(f"{verb}: {_names(workers)}{free}", HANG)
    if not able:
        print_line("no worker can take it")
    for why, workers in grouped(row for row in takers if not row.takes):
        print_prose(f"cannot: {_names(workers)}: {why}", HANG)


def _names(workers: tuple[str, ...]) -> str:
    more = f" and {len(workers) - NAMED} more" if len(workers) > NAMED else ""
    return ", ".join(workers[:NAMED]) + more
