"""``cogrid model``."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "forget": ("cogrid.cli.model_forget", "Strike off a model that no worker has any longer."),
    "list": ("cogrid.cli.model_list", "Who has what, and whether it is the same."),
    "pull": ("cogrid.cli.model_pull", "Have workers get a model and serve it."),
    "remove": ("cogrid.cli.model_remove", "Have workers throw a model away."),
    "warm": ("cogrid.cli.model_warm", "Load a model into memory before it is asked for."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Models: which worker has which, and what it should have."""
