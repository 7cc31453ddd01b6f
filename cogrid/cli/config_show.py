"""``cogrid config show``."""

from __future__ import annotations

import os
from typing import Any

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_json
from cogrid.cli.output import note, print_json, print_table


@click.command()
@click.argument("section", default="", metavar="[SECTION|KEY]")
@click.option("--changed", is_flag=True, help="Only what is not at its default.")
@click.option("--config", "config_file", metavar="FILE", help="Configuration file.")
@click.option("--redis", "redis_url", metavar="URL", help="Redis or Valkey to use.")
@click.option("--prefix", metavar="TEXT", help="What stands in front of every key.")
@answers("cogrid.ops.settings:Settings")
@with_json
def command(
    section: str,
    changed: bool,
    config_file: str | None,
    redis_url: str | None,
    prefix: str | None,
    as_json: bool,
) -> None:
    """Every setting with its value and where it comes from; secrets are not shown.

    \b
    cogrid config show
    cogrid config show limits
    cogrid config show --changed
    """
    from dataclasses import replace

    from cogrid.config import load_effective
    from cogrid.config.near import unknown
    from cogrid.errors import NotFoundError
    from cogrid.ops.settings import DEFAULT, settings

    flags = {"redis.url": redis_url, "redis.prefix": prefix}
    found = settings(load_effective(config_file, os.environ, flags))
    rows = tuple(
        row
        for row in found.settings
        if (row.key == section or row.key.startswith(f"{section}.") or not section)
        and not (changed and row.source == DEFAULT)
    )
    names = [name for row in found.settings for name in (row.key, row.key.partition(".")[0])]
    if section and section not in names:
        raise NotFoundError(f"{section!r} {unknown(section, names)}", "cogrid config show has all")
    if as_json:
        print_json(replace(found, settings=rows))
        return
    print_table(
        "Settings", ("KEY", "VALUE", "SOURCE"), ((r.key, _text(r.value), r.source) for r in rows)
    )
    if found.domains and not section:
        note(f"domains: {', '.join(found.domains)}")
    if found.hosts and not section:
        note(f"hosts: {', '.join(found.hosts)}")
    note(f"file: {found.file or 'none'}")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
