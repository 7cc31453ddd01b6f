"""``cogrid task show``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_facts, print_json

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.argument("task")
@answers("cogrid.ops.tasks:TaskFacts")
@with_json
@with_config
def command(config: Config, task: str, as_json: bool) -> None:
    """Everything about one task, also one that has ended and is still kept.

    \b
    cogrid task show cb305e3a
    cogrid task show cb305e3a --json | jq .state
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.tasks import task_facts

    found = task_facts(open_store(config), task)
    if as_json:
        print_json(found)
    else:
        print_facts((name, as_word(value)) for name, value in asdict(found).items())


def as_word(value: Any) -> object:
    """A fact as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value
