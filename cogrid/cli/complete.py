"""Completion of what the grid has: workers, models and tasks, wherever a parameter is named so.

It must never be in the way: the server has 0.3 s, and whatever goes wrong means no names.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from cogrid.store.client import Store

VARIABLE = "_COGRID_COMPLETE"
"""Set by the shell's script when it wants to know how a word may go on."""
LIMIT_S = 0.3
FEW = 50
"""Task ids that are offered at once."""


def with_names(command: click.Command) -> click.Command:
    """The command, whose parameters offer the grid's names while a shell completes."""
    if VARIABLE in os.environ:
        for parameter in command.params:
            kind = _KINDS.get(parameter.name or "")
            if kind and not isinstance(parameter.type, click.Choice):
                setattr(parameter, "shell_complete", _completer(kind))  # noqa: B010
    return command


def _completer(
    kind: Callable[[Store, str], Iterable[str]],
) -> Callable[[click.Context, str], list[CompletionItem[str]]]:
    def complete(context: click.Context, begun: str) -> list[CompletionItem[str]]:
        names = sorted(name for name in _within_limit(kind, context, begun))
        return [CompletionItem(name) for name in names if name.startswith(begun)]

    return complete


def _within_limit(
    kind: Callable[[Store, str], Iterable[str]], context: click.Context, begun: str
) -> tuple[str, ...]:
    """The names, or none where they do not come in time. The thread that still waits for them ends
    with the process."""
    found: list[str] = []

    def look(store: Store) -> None:
        with contextlib.suppress(Exception):
            found.extend(kind(store, begun))

    with contextlib.suppress(Exception):
        store, limit_s = _store(context)
        thread = threading.Thread(target=look, args=(store,), daemon=True)
        thread.start()
        thread.join(limit_s)
    return tuple(found)


def _store(context: click.Context) -> tuple[Store, float]:
    """The store, not connected yet, and how long it may take. What is loaded for it takes its time
    too, but that is not the server's."""
    import cogrid.store.follow
    import cogrid.store.names  # noqa: F401
    from cogrid.cli.connect import open_store
    from cogrid.config import load

    said = context.params
    flags = {"redis.url": said.get("redis_url"), "redis.prefix": said.get("prefix")}
    config = load(said.get("config_file"), os.environ, flags)
    return open_store(config), LIMIT_S * config.time_scale


def _workers(store: Store, _: str) -> Iterable[str]:
    from cogrid.store.names import read_worker_names

    return store.read(read_worker_names(store.keys))


def _models(store: Store, _: str) -> Iterable[str]:
    from cogrid.store.names import read_model_names

    return store.read(read_model_names(store.keys))


def _tasks(store: Store, begun: str) -> Iterable[str]:
    """Without a beginning the open ones; with one also those that have ended."""
    from cogrid.store.follow import find_tasks
    from cogrid.store.names import read_open_tasks

    if begun.isalnum():
        return store.read(find_tasks(store.keys, begun, FEW))
    return store.read(read_open_tasks(store.keys))[:FEW]


_KINDS = {
    "worker": _workers,
    "workers": _workers,
    "without": _workers,
    "model": _models,
    "models": _models,
    "task": _tasks,
    "ids": _tasks,
}
"""A parameter's name -> what it names."""
