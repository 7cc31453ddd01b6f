"""``cogrid worker drain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.consent import ask, with_consent
from cogrid.cli.documents import answers
from cogrid.cli.duration import seconds
from cogrid.cli.options import with_config, with_json
from cogrid.cli.output import note, print_json, print_line
from cogrid.cli.until import until as until_time
from cogrid.cli.waited import wait
from cogrid.cli.went import print_went, say_leaving
from cogrid.errors import Exit, UsageError

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.drain import Drained, Step
    from cogrid.rules.leaving import Leaving
    from cogrid.store.client import Store


@click.command()
@click.argument("worker")
@click.option("--for", "for_s", type=seconds, metavar="DURATION", help="Then resume by itself.")
@click.option(
    "--until", "until_s", type=until_time, metavar="HH:MM", help="The same, by the clock."
)
@click.option("--timeout", type=seconds, metavar="DURATION", help="Wait no longer; exit with 1.")
@click.option("--no-wait", is_flag=True, help="Ask for it and return.")
@with_consent
@answers("cogrid.ops.drain:Drained")
@with_json
@with_config
def command(
    config: Config,
    worker: str,
    for_s: float | None,
    until_s: float | None,
    timeout: float | None,
    no_wait: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Let a worker finish what it runs and take no more; what waits for it alone is moved.

    Waits until that is so. The worker goes on draining when this command is interrupted.

    \b
    cogrid worker drain esxi
    cogrid worker drain esxi --for 3h
    cogrid worker drain esxi --until 23:00 --timeout 10m --yes
    """
    from cogrid.cli.connect import open_store
    from cogrid.ops.drain import Drained, plan_drain

    if for_s is not None and until_s is not None:
        raise UsageError("--for and --until exclude each other", "choose one of them")
    store = open_store(config)
    plan = plan_drain(store, config.limits, worker)
    if dry_run:
        result = Drained(plan.worker, True, None, None, None, plan)
        print_json(result) if as_json else say_leaving(plan, print_line)
        return Exit.OK
    if not as_json:
        say_leaving(plan, note)
    ask(f"Drain {plan.worker}?", yes)
    lasts_s = for_s if for_s is not None else until_s
    return _drain(store, config, plan, lasts_s, timeout, no_wait, as_json)


def _drain(
    store: Store,
    config: Config,
    plan: Leaving,
    lasts_s: float | None,
    timeout_s: float | None,
    no_wait: bool,
    as_json: bool,
) -> int:
    from cogrid.ops.drain import Drained, drain, drained
    from cogrid.ops.trail import Trail

    trail = Trail(store, plan.worker)
    asked = drain(store, plan.worker, lasts_s)
    done: bool | None = None
    if not no_wait:
        try:
            steps = drained(store, config.limits, plan.worker)
            done = wait(steps, _told, timeout_s, quiet=as_json).over
        except KeyboardInterrupt:
            note(f"{plan.worker} goes on draining; cogrid worker resume {plan.worker} ends that")
            raise
    result = Drained(plan.worker, False, asked.by, asked.until, done, plan, trail.went())
    if as_json:
        print_json(result)
    else:
        _print(result)
    return Exit.FAILED if done is False else Exit.OK


def _told(step: Step) -> str:
    if step.over:
        return "nothing runs, nothing waits"
    hint = f" ({step.hint})" if step.hint else ""
    return f"{step.runs} running, {step.waiting} waiting{hint}"


def _print(result: Drained) -> None:
    word = {True: "is drained", False: "still drains: the limit has passed", None: "drains"}
    print_line(f"{result.worker} {word[result.done]}")
    if result.until:
        print_line(f"it resumes by itself at {result.until}")
    print_went(result.tasks)
