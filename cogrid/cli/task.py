"""``cogrid task``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "list": ("cogrid.cli.task_list", "Tasks, with filters."),
    "show": ("cogrid.cli.task_show", "Everything about one task."),
    "cancel": ("cogrid.cli.task_cancel", "End tasks that are open."),
    "requeue": ("cogrid.cli.task_requeue", "Have tasks go again."),
    "purge": ("cogrid.cli.task_purge", "Drop tasks that have ended."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Tasks: requests on their way to an answer. The beginning of an id is enough where it is the
    only one."""
