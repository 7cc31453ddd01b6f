"""``cogrid key``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line, print_table

if TYPE_CHECKING:
    from cogrid.config import Config


@click.group()
def command() -> None:
    """API keys: who may ask the grid. Only a key's hash is kept."""


@command.command()
@click.option("--label", required=True, metavar="TEXT", help="Whose it is, or what for.")
@click.option(
    "--per-minute",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Requests a minute; 0: no limit.",
)
@click.option("--trusted", is_flag=True, help="Believe its X-OpenWebUI-User-Id headers.")
@answers("The fields of ApiKey, and `key`: the key itself.", "cogrid.store.api_keys:ApiKey")
@with_json
@with_config
def new(config: Config, label: str, per_minute: int, trusted: bool, as_json: bool) -> None:
    """Make a key and show it, this once.

    \b
    cogrid key new --label open-webui --trusted
    cogrid key new --label nightly-batch --per-minute 60
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.keys import new_key

    secret, facts = new_key(open_store(config), label, per_minute, trusted)
    if as_json:
        print_json({"key": secret, **asdict(facts)})
        return
    print_line(secret)
    note(f"key {facts.id} ({facts.label}): keep it now, it is not shown again")


@command.command("list")
@answers("`keys`: list of ApiKey.", "cogrid.store.api_keys:ApiKey")
@with_json
@with_config
def list_(config: Config, as_json: bool) -> None:
    """The keys there are.

    \b
    cogrid key list
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.keys import keys

    found = keys(open_store(config))
    if as_json:
        print_json({"keys": [asdict(key) for key in found]})
        return
    print_table(
        "Keys",
        ("KEY", "LABEL", "PER MINUTE", "TRUSTED", "CREATED"),
        (
            (k.id, k.label, k.a_minute or "no limit", "yes" if k.trusted else "no", k.created_at)
            for k in found
        ),
    )
    if not found:
        note("no key exists: the coordinator answers its own machine only")


@command.command()
@click.argument("name")
@answers("`revoked`: the ApiKey that is void now.", "cogrid.store.api_keys:ApiKey")
@with_json
@with_config
def revoke(config: Config, name: str, as_json: bool) -> None:
    """Void a key, by its id as cogrid key list shows it, the beginning of that, or its label.

    \b
    cogrid key revoke nightly-batch
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.keys import revoke_key

    gone = revoke_key(open_store(config), name)
    if as_json:
        print_json({"revoked": asdict(gone)})
        return
    print_line(f"revoked {gone.id} ({gone.label})")
