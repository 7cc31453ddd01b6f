"""Whether a command that a finding prints is one that there is."""

from __future__ import annotations

import shlex

import click

from cogrid.cli.main import command


def assert_is_a_command(mend: str) -> None:
    """Every word of it is taken by the command that it calls; the command is not run."""
    first, *words = shlex.split(mend)
    assert first == "cogrid", mend
    found: click.Command = command
    while isinstance(found, click.Group):
        name, *words = words
        inner = found.get_command(click.Context(found), name)
        assert inner is not None, f"{mend}: there is no {name}"
        found = inner
    found.make_context(found.name, words)
