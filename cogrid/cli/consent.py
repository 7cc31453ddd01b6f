"""What changes the grid shows first what it will do, and asks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from cogrid.cli.output import note
from cogrid.errors import CogridError, UsageError


def with_consent(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--dry-run`` and ``--yes``; the command gets ``dry_run`` and ``yes``."""
    command = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")(command)
    return click.option(
        "--dry-run", is_flag=True, help="Show what would be done; nothing is written."
    )(command)


def ask(question: str, yes: bool) -> None:
    """Returns where it may be done. The question goes to stderr, so that stdout stays the answer.
    Without a terminal nobody is asked: then only ``--yes`` does it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{question} There is no terminal to ask on, so nothing was done",
            "add --yes, or look first with --dry-run",
        )
    note("")
    if not click.confirm(question, default=False, err=True):
        raise CogridError("nothing was done")


def agreed(question: str) -> bool:
    """For what is not needed but offered. False without a terminal: nobody has agreed then."""
    return sys.stdin.isatty() and click.confirm(question, default=False, err=True)
