"""``cogrid worker run``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import in_config, with_config, with_log
from cogrid.cli.output import print_json
from cogrid.errors import Exit, UsageError

if TYPE_CHECKING:
    from cogrid.config import Config

T = TypeVar("T")


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
    help="Only find the engine, probe its models and ask Redis, within this time.",
)
@click.option("--json", "as_json", is_flag=True, help="Of a trial: one JSON document.")
@answers("cogrid.model.trial:Trial", "Only with --trial.")
@with_config
@with_log
@in_config(
    worker_id="worker.id",
    pool="worker.pool",
    engine="worker.engine",
    slots="worker.slots",
    models="worker.models",
)
def command(config: Config, trial: float | None, as_json: bool) -> int:
    """Run the worker until SIGTERM: it then finishes what it runs, at most drain_timeout_s.

    With --trial: its start up to the end of the probes. No name is taken, nothing is registered or
    claimed, and whoever runs under this name goes on.

    \b
    cogrid worker run
    cogrid worker run --id esxi --pool cpu --engine http://127.0.0.1:11434
    cogrid worker run --trial 60

    \b
    Exit codes: 0 ended as it was told to, 3 a trial found something that keeps it from work,
    75 another machine has taken its name (a unit must not start it again).
    """
    from cogrid.cli.connect import address_of

    if trial is not None:
        return _try(config, trial, as_json)
    if as_json:
        raise UsageError("--json belongs to --trial", "add --trial SECONDS, or leave it out")
    from cogrid.config import state_dir
    from cogrid.worker.life import live

    return _on_fast_loop(live(config, address_of(config), state_dir(config, os.environ)))


def _try(config: Config, limit_s: float, as_json: bool) -> int:
    from cogrid.cli.connect import address_of
    from cogrid.worker.trial import trial

    found = _on_fast_loop(trial(config, limit_s, address=address_of(config)))
    if as_json:
        print_json(found)
    return Exit.OK if found.fine else Exit.FINDINGS


def _on_fast_loop(work: Coroutine[Any, Any, T]) -> T:
    """uvloop halves what a token costs; it comes with the coordinator's server, but not on every
    platform."""
    from cogrid.worker.event_loop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
