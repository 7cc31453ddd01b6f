"""``cogrid worker run``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.options import in_config, with_config, with_log

if TYPE_CHECKING:
    from cogrid.config import Config


@click.command()
@click.option("--id", "worker_id", metavar="NAME", help="Its name; else the short host name.")
@click.option("--pool", metavar="NAME", help="Its pool; else gpu or cpu, as the engine computes.")
@click.option("--engine", metavar="URL", help="The engine, or demo; else the usual ports here.")
@click.option("--slots", type=int, metavar="N", help="Runs at once; else as many as the engine.")
@click.option("--models", metavar="A,B", help="Offer only these; else all that the engine has.")
@click.option(
    "--trial",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Only find the engine and probe its models, within this time.",
)
@with_config
@with_log
@in_config(
    worker_id="worker.id",
    pool="worker.pool",
    engine="worker.engine",
    slots="worker.slots",
    models="worker.models",
)
def command(config: Config, trial: float | None) -> int:
    """Run the worker until SIGTERM: it then finishes what it runs, at most drain_timeout_s.

    \b
    cogrid worker run
    cogrid worker run --id esxi --pool cpu --engine http://127.0.0.1:11434
    cogrid worker run --trial 60

    \b
    Exit codes: 0 ended as it was told to, 3 a model failed in a trial,
    75 another machine has taken its name (a unit must not start it again).
    """
    if trial is not None:
        from cogrid.worker.trial import trial as try_out

        return _on_fast_loop(try_out(config, trial))
    from cogrid.cli.connect import address_of
    from cogrid.config import state_dir
    from cogrid.worker.life import live

    return _on_fast_loop(live(config, address_of(config), state_dir(config, os.environ)))


def _on_fast_loop(work: Coroutine[Any, Any, int]) -> int:
    """uvloop halves what a token costs; it comes with the coordinator's server, but not on every
    platform."""
    from cogrid.worker.event_loop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
