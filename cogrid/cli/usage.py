"""``cogrid usage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import print_line, print_table

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.usage import Usage, UsageRow


@click.command()
@click.option(
    "--since", type=seconds, default="7d", metavar="DURATION", help="How far back (7d; 35d kept)."
)
@answers("cogrid.ops.usage:Usage")
@with_json
@with_config
def command(config: Config, since: float, as_json: bool) -> int:
    """Requests, tokens and seconds by user, key, model and worker, in whole days (UTC).

    \b
    cogrid usage
    cogrid usage --since 30d --json | jq '.users[0]'
    """
    from cogrid.cli.connect import open_view
    from cogrid.ops.usage import usage

    store = open_view(config)
    return answer(store, usage(store, since), as_json, _print)


def _print(found: Usage) -> None:
    from cogrid.rules.counted import counted

    total = found.total
    print_line(
        f"{found.from_day} to {found.to_day}: {counted(total.requests, 'request')}, "
        f"{counted(total.tokens, 'token')}, {total.seconds:.1f} s of work"
    )
    _print_by("User", found.users)
    _print_by("Key", found.keys)
    _print_by("Model", found.models)
    _print_by("Worker", found.workers)


def _print_by(noun: str, rows: tuple[UsageRow, ...]) -> None:
    if rows:
        print_table(
            f"By {noun.lower()}",
            (noun.upper(), "REQUESTS", "TOKENS", "SECONDS"),
            ((row.name, row.requests, row.tokens, f"{row.seconds:.1f}") for row in rows),
        )
