"""``cogrid task list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_table

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.tasks import TaskList, TaskRow

STATES = ("pending", "running", "waiting", "done", "failed", "dead", "cancelled", "expired")


@click.command()
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Only these; else all open."
)
@click.option("--model", default="", metavar="NAME", help="Only of this model.")
@click.option("--worker", default="", metavar="NAME", help="Only that this worker runs or ran.")
@click.option("--user", default="", metavar="NAME", help="Only of this user.")
@click.option("--queue", default="", metavar="NAME", help="Only of this queue.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, metavar="N", help="At most so many (100)."
)
@answers("cogrid.ops.tasks:TaskList")
@with_json
@with_config
def command(
    config: Config,
    states: tuple[str, ...],
    model: str,
    worker: str,
    user: str,
    queue: str,
    limit: int,
    as_json: bool,
) -> int:
    """Tasks that are open, the oldest first; or those in the states that are asked for.

    \b
    cogrid task list
    cogrid task list --state running --worker esxi
    cogrid task list --state failed --state expired --model gemma3:1b --json
    """
    from cogrid.cli.connect import open_view
    from cogrid.model.names import normal_model
    from cogrid.ops.tasks import Filter, tasks

    wanted = Filter(states, normal_model(model), worker, user, queue, limit)
    store = open_view(config)
    return answer(store, tasks(store, wanted), as_json, _print)


def _print(found: TaskList) -> None:
    print_table(
        "Tasks",
        ("TASK", "STATE", "MODEL", "WORKER", "QUEUE", "USER", "BAND", "AGE", "IN STATE", "TRIES",
         "REASON"),
        map(_row, found.tasks),
        ("TRIES", "BAND", "IN STATE", "AGE"),
    )  # fmt: skip
    if found.total > len(found.tasks):
        note(f"{len(found.tasks)} of {found.total} are shown: --limit shows more")
    if found.cut:
        note(f"there are more tasks than the {found.looked_at} that were looked at")


def _row(task: TaskRow) -> tuple[object, ...]:
    return (
        task.id,
        task.state,
        task.model,
        task.worker,
        task.queue,
        task.user,
        task.band,
        shown(task.age_s),
        shown(task.in_state_s),
        f"{task.attempts}+{task.recoveries}",
        task.error or task.reason,
    )
