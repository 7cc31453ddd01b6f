"""``cogrid drill``."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import Exit
from cogrid.signals import Told

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.drill import Drilled, Moment


@click.command()
@click.argument("fault", type=click.Choice(("ghost", "dead", "zombie")))
@with_consent
@answers("cogrid.ops.drill:Drilled")
@with_json
@with_config
def command(config: Config, fault: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Make a fault on the running grid and measure how it recovers.

    ghost: a worker registers and never works; dead: one is gone with a task; zombie: one makes no
    progress. Worker, task, pool and model are the drill's own, and all of it is removed again.
    Exits with 1 where the recovery did not come in time.

    \b
    cogrid drill ghost
    cogrid drill dead --yes --json
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.drill import Drill, Drilled, plan_drill
    from cogrid.rules.drill import NOTICED, TOLD, Fault

    kind = Fault(fault)
    store = open_store(config)
    outlook = plan_drill(store, config.limits, kind)
    plan = f"a throw-away worker {TOLD[kind]}; within {outlook.bound_s:g} s another has its task"
    if dry_run:
        if as_json:
            print_json(
                Drilled(kind, "", True, None, outlook.bound_s, None, None, NOTICED[kind], None,
                        False, None)
            )  # fmt: skip
        else:
            print_line(plan)
        return Exit.OK
    if not as_json:
        note(plan)
        if not outlook.reaper:
            note("no reaper is at work, so nothing will be taken back")
    ask(f"Drill {fault}?", yes)
    say = (lambda _: None) if as_json else _say
    drill = Drill(store, config.limits, outlook, say, sleep=_interrupted_sleep())
    return _print(drill.run(), as_json)


def _interrupted_sleep() -> Callable[[float], None]:
    """A sleep that SIGINT and SIGTERM end with KeyboardInterrupt. Not in the middle of a call to
    Redis, whose reply would be left for the clean-up to trip over."""
    told = Told()
    told.on_signals(signal.SIGINT, signal.SIGTERM)

    def sleep(seconds: float) -> None:
        if told.wait(seconds):
            told.clear()
            raise KeyboardInterrupt

    return sleep


def _say(moment: Moment) -> None:
    note(f"{moment.at_s:6.1f} s  {moment.what}")


def _print(result: Drilled, as_json: bool) -> int:
    if as_json:
        print_json(result)
    elif result.recovered_s is None:
        print_line(f"drill {result.fault}: NOT recovered within {result.bound_s:g} s")
    else:
        word = "recovered" if result.ok else "recovered, but not as it should"
        print_line(
            f"drill {result.fault}: {word} after {result.recovered_s:g} s "
            f"({result.reason}; bound {result.bound_s:g} s)"
        )
    if result.hint and not as_json:
        note(f"  → {result.hint}")
    return Exit.OK if result.ok else Exit.FAILED
