"""``cogrid task show``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_facts

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.tasks import TaskFacts


@click.command()
@click.argument("task")
@answers("cogrid.ops.tasks:TaskFacts")
@with_json
@with_config
def command(config: Config, task: str, as_json: bool) -> int:
    """Everything about one task, also one that has ended and is still kept.

    \b
    cogrid task show cb305e3a
    cogrid task show cb305e3a --json | jq .state
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.tasks import task_facts

    store = open_view(config)
    return answer(store, task_facts(store, task), as_json, _print)


def _print(found: TaskFacts) -> None:
    print_facts((name, as_word(value)) for name, value in asdict(found).items())


def as_word(value: Any) -> object:
    """A fact as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value
