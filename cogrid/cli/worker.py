"""``cogrid worker``: its commands."""

from __future__ import annotations

import click

from cogrid.cli.lazy import LazyGroup, Members

MEMBERS: Members = {
    "run": ("cogrid.cli.worker_run", "Run the worker beside an engine."),
    "drain": ("cogrid.cli.worker_drain", "Finish what runs, take no more."),
    "resume": ("cogrid.cli.worker_resume", "Take work again."),
    "forget": ("cogrid.cli.worker_forget", "Strike off one that is gone, or a ghost by force."),
    "list": ("cogrid.cli.worker_list", "Workers, with filters."),
    "show": ("cogrid.cli.worker_show", "Everything about one worker."),
    "why-idle": ("cogrid.cli.worker_why_idle", "Why a worker has nothing to do."),
}


@click.group(cls=LazyGroup, members=MEMBERS)
def command() -> None:
    """The workers: each stands beside an engine, takes tasks for its models and streams their
    answers."""
