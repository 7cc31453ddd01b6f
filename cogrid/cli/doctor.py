"""``cogrid doctor``."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_json
from cogrid.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from cogrid.config import Effective
    from cogrid.ops.doctor import Checkup


@click.command()
@click.option("--bundle", metavar="FILE", help="Also write FILE (tar.gz) for whoever helps you.")
@click.option("--config", "config_file", metavar="FILE", help="Configuration file.")
@click.option("--redis", "redis_url", metavar="URL", help="Redis or Valkey to use.")
@click.option("--prefix", metavar="TEXT", help="What stands in front of every key.")
@answers("cogrid.ops.doctor:Checkup")
@with_json
def command(
    bundle: str | None,
    config_file: str | None,
    redis_url: str | None,
    prefix: str | None,
    as_json: bool,
) -> int:
    """Check configuration, Redis, reaper, workers, coordinator, clocks and the engine here; each
    passes, or says what to do. The bundle holds no prompts, secrets, keys or users.

    \b
    cogrid doctor
    cogrid doctor --json | jq '.checks[] | select(.verdict != "pass")'
    cogrid doctor --bundle cogrid-bundle.tar.gz
    """
    from cogrid.cli.connect import coordinator_of, open_view
    from cogrid.config import ConfigError, load_effective
    from cogrid.ops.doctor import checkup, misconfigured

    flags = {"redis.url": redis_url, "redis.prefix": prefix}
    try:
        found = load_effective(config_file, os.environ, flags)
    except ConfigError as error:
        return _print(misconfigured(error), as_json)
    url, _ = coordinator_of(found.config)
    checked = checkup(found, lambda: open_view(found.config), url)
    if bundle:
        checked = replace(checked, bundle=bundle)
        _write(Path(bundle).expanduser(), found, checked)
    return _print(checked, as_json)


def _write(path: Path, found: Effective, checked: Checkup) -> None:
    from cogrid.cli.connect import open_view
    from cogrid.ops.bundle import write_bundle

    with contextlib.ExitStack() as stack:
        store = open_view(found.config) if checked.reached else None
        if store:
            stack.callback(store.close)
        write_bundle(path, found, checked, store)


def _print(checked: Checkup, as_json: bool) -> int:
    if as_json:
        print_json(checked)
        return checked.exit_code
    print_table(
        f"cogrid {checked.version} on {checked.host}",
        ("AREA", "VERDICT", "WHAT", "MEND"),
        ((c.area, c.verdict, c.what, c.mend) for c in checked.checks),
    )
    if checked.bundle:
        note(f"wrote {checked.bundle}; look into it before you send it")
    return checked.exit_code
