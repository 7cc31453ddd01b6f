"""Which hosts a command goes to: ``--host``, ``--hosts-from`` and ``--all``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cogrid.errors import UsageError
from cogrid.model.host import Role, Scope

ROLES = tuple(role.value for role in Role)
SCOPES = tuple(scope.value for scope in Scope)
"""What the options ``--role`` and ``--scope`` take."""

Function = Callable[..., Any]

NO_HOST = UsageError(
    "no host was named",
    "name it with --host 192.168.0.41, or all of [[host]] in the configuration with --all",
)


def with_hosts(command: Function) -> Function:
    """The command gets ``hosts``, a tuple of ``Host``, empty where none was named. To be written
    below ``with_config``."""

    @click.option("--all", "every_host", is_flag=True, help="Every [[host]] of the configuration.")
    @click.option("--hosts-from", metavar="FILE", help="Hosts from a file, one a line; - is stdin.")
    @click.option(
        "--host",
        "named_hosts",
        multiple=True,
        metavar="HOST",
        help="HOST, USER@HOST:PORT, an alias of the SSH configuration, or a [[host]]'s id; "
        "may be given several times.",
    )
    @functools.wraps(command)
    def told(
        *args: Any,
        config: Any,
        named_hosts: tuple[str, ...],
        hosts_from: str | None,
        every_host: bool,
        **more: Any,
    ) -> Any:
        from cogrid.rules.hosts import chosen

        if every_host and not config.hosts:
            raise UsageError(
                "--all means every [[host]] of the configuration, and there is none",
                "name hosts with --host, or write them down: docs/configuration.md",
            )
        names = (*named_hosts, *_from_file(hosts_from))
        return command(*args, config=config, hosts=chosen(names, every_host, config.hosts), **more)

    return told


def _from_file(path: str | None) -> tuple[str, ...]:
    from cogrid.rules.hosts import listed

    if path is None:
        return ()
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"the hosts cannot be read from {path}: {reason}") from error
    found = listed(text)
    if not found:
        raise UsageError(f"there is no host in {path}", "write one a line")
    return found
