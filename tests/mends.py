"""Which findings there are, and whether a command that one prints is one that there is."""

from __future__ import annotations

import ast
import inspect
import shlex

import click

from cogrid.cli.main import command
from cogrid.model.task import Reason
from cogrid.rules import consistency, drift, ghosts, spof, stuck, suspects, what_if


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


def kinds() -> set[str]:
    """Every kind of finding that a command can print."""
    return {
        *(kind for each in (ghosts, spof, stuck, suspects, what_if) for kind in each.KINDS),
        ghosts.GONE,
        drift.DRIFT,
        Reason.ZOMBIE_RUNNING.value,
        *_inconsistencies(),
    }


def _inconsistencies() -> set[str]:
    """The words that its checks give to ``Finding`` and ``_task``."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(consistency))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            at = {"Finding": 0, "_task": 1}.get(node.func.id)
            word = node.args[at] if at is not None else None
            if isinstance(word, ast.Constant):
                found.add(str(word.value))
    return found
