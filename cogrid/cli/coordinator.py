"""``cogrid coordinator run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.options import in_config, with_config, with_log

if TYPE_CHECKING:
    from cogrid.config import Config


@click.group()
def command() -> None:
    """The HTTP side of the grid: OpenAI's and Ollama's interfaces, and the grid's own."""


@command.command()
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to listen (127.0.0.1:8700).")
@with_config
@with_log
@in_config(listen="coordinator.listen")
def run(config: Config) -> None:
    """Serve until SIGTERM; streams may then go on for 30 s.

    Any number of coordinators may serve one grid. Without an API key it listens on this machine
    only.

    \b
    cogrid coordinator run
    cogrid coordinator run --listen 0.0.0.0:8700
    """
    from cogrid.cli.connect import address_of
    from cogrid.coordinator.serve import run as serve

    serve(config, address_of(config))
