"""Groups whose commands are imported when they are called, so that help and completion are quick
and load nothing that they do not need."""

from __future__ import annotations

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from cogrid.cli.complete import with_names

Members = dict[str, tuple[str, str]]
"""Name -> where the click command is (``module`` or ``module:attribute``; the attribute is
``command`` unless it is said) and the line that ``--help`` shows."""


class LazyGroup(click.Group):
    """A group of commands that are named and not yet loaded."""

    def __init__(self, *args: Any, members: Members, **more: Any) -> None:
        super().__init__(*args, **more)
        self.members = members

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.members:
            return None
        module, _, attribute = self.members[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute or "command")
        assert isinstance(command, click.Command)
        return with_names(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.members or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from cogrid.config.near import unknown

        raise click.UsageError(f"command '{name}' {unknown(name, self.members)}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Names and lines, as in ``--help``, without loading a command for its line."""
        named = [
            CompletionItem(name, help=line)
            for name, (_, line) in self.members.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.members.items()])
