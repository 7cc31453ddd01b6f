"""``cogrid worker``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "run": ("cogrid.cli.worker_run", "Run the worker beside an engine."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """The workers: each stands beside an engine, takes tasks for its models and streams their
    answers."""
