"""``cogrid model``."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "list": ("cogrid.cli.model_list", "Who has what, and whether it is the same."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """Models: which worker has which."""
