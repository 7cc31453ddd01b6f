"""``cogrid spof``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.findings import print_findings
from cogrid.cli.options import with_config, with_json

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.option("--model", metavar="NAME", help="Only this model.")
@with_json
@with_config
def command(config: Config, model: str | None, as_json: bool) -> int:
    """Models that only one worker or one host can serve, or none: single points of failure.

    Exit code 3 when there are some.

    \b
    cogrid spof
    cogrid spof --model gemma3:1b
    """
    from cogrid.cli.connect import open_store
    from cogrid.model.names import normal_model
    from cogrid.ops.spof import spof

    found = spof(open_store(config), config.limits, normal_model(model) if model else None)
    what = f"{model} is" if model else "every model is"
    return print_findings(found, as_json, f"no single point of failure: {what} on two hosts")
