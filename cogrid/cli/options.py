"""Options that several commands share, each defined once."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]


def in_config(**keys: str) -> Callable[[Function], Function]:
    """Parameters of a command that are keys of the configuration (parameter -> ``section.key``):
    ``with_config`` puts them into it, checked like every other value, and the command gets none."""

    def mark(command: Function) -> Function:
        command.config_keys = keys  # type: ignore[attr-defined]
        return command

    return mark


def with_config(command: Function) -> Function:
    """``--config``, ``--redis`` and ``--prefix``; the command gets the ``config`` they make,
    together with the file and the environment."""
    keys: dict[str, str] = getattr(command, "config_keys", {})

    @click.option("--config", "config_file", metavar="FILE", help="Configuration file.")
    @click.option("--redis", "redis_url", metavar="URL", help="Redis or Valkey to use.")
    @click.option("--prefix", metavar="TEXT", help="What stands in front of every key.")
    @functools.wraps(command)
    def configured(
        *args: Any, config_file: str | None, redis_url: str | None, prefix: str | None, **more: Any
    ) -> Any:
        from cogrid.config import load

        flags = {"redis.url": redis_url, "redis.prefix": prefix}
        flags |= {key: more.pop(name) for name, key in keys.items()}
        return command(*args, config=load(config_file, os.environ, flags), **more)

    return configured


def with_json(command: Function) -> Function:
    """``--json``: the command gets ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="One JSON document instead of tables."
    )(command)


def narrowing(command: Function) -> Function:
    """``--worker``, ``--pool`` and ``--model``: what is shown is narrowed to them."""
    for name, help_text in (
        ("--model", "Only what has this model."),
        ("--pool", "Only this pool."),
        ("--worker", "Only this worker."),
    ):
        command = click.option(name, default="", metavar="NAME", help=help_text)(command)
    return command


def with_log(command: Function) -> Function:
    """``--log-format`` and ``--log-level`` of a daemon; without them the configuration decides."""

    @click.option("--log-format", type=click.Choice(["text", "json"]), help="How to log.")
    @click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="From which level on.",
    )
    @functools.wraps(command)
    def logged(
        *args: Any, log_format: str | None, log_level: str | None, config: Any, **more: Any
    ) -> Any:
        from cogrid.cli.logs import setup

        setup(log_format or config.log.format, log_level or config.log.level)
        return command(*args, config=config, **more)

    return logged
