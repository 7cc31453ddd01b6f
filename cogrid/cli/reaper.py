"""``cogrid reaper``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_config, with_json, with_log
from cogrid.cli.output import note, print_json, print_line
from cogrid.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogrid.config import Config
    from cogrid.model.limits import Limits
    from cogrid.reaper.line import Line
    from cogrid.reaper.one_pass import Report


@click.command()
@click.option("--once", is_flag=True, help="Free what is stuck now, then end.")
@click.option("--dry-run", is_flag=True, help="Show what a pass would do; nothing is written.")
@click.option("--daemon", is_flag=True, help="Pass after pass, until SIGTERM.")
@answers(
    "`dry_run`; `acts`: for each the act, task, worker, reason, evidence, queue, homes, message, "
    "hint, and the line of the log; `problems`: list of text."
)
@with_json
@with_config
@with_log
@click.pass_context
def command(
    context: click.Context, config: Config, once: bool, dry_run: bool, daemon: bool, as_json: bool
) -> None:
    """Free what is stuck: runs of dead workers, tasks behind ghosts, runs without progress.

    Any number of reapers may run at once. Where none does, --once first passes for one lease
    before it takes anything back: right after a silence, the dead and the silenced look alike.

    \b
    cogrid reaper --dry-run
    cogrid reaper --once
    cogrid reaper --daemon
    """
    if once + dry_run + daemon > 1:
        raise UsageError("--once, --dry-run and --daemon exclude each other", "choose one of them")
    if daemon and as_json:
        raise UsageError("--json is for --once and --dry-run", "a daemon has --log-format json")
    if once:
        _once(config, as_json)
    elif dry_run:
        _dry_run(config, as_json)
    elif daemon:
        _daemon(config)
    else:
        click.echo(context.get_help())


def _once(config: Config, as_json: bool) -> None:
    import time

    from cogrid.cli.connect import open_store
    from cogrid.reaper.once import once

    lines: list[Line] = []
    problems: dict[str, None] = {}
    reports = once(open_store(config), config.limits, config.routing, time.sleep)
    for number, report in enumerate(reports):
        if number == 0 and report.held:
            _say_hold(report, config.limits)
        lines += report.lines
        problems |= dict.fromkeys(report.problems)
        if not as_json:
            _print(report.lines)
    _close(lines, problems, as_json, dry_run=False)


def _dry_run(config: Config, as_json: bool) -> None:
    from cogrid.cli.connect import open_store
    from cogrid.reaper.one_pass import dry_run

    report = dry_run(open_store(config), config.limits, config.routing)
    _say_hold(report, config.limits)
    if not as_json:
        _print(report.lines)
    _close(report.lines, report.problems, as_json, dry_run=True)


def _daemon(config: Config) -> None:
    from cogrid.cli.connect import open_store
    from cogrid.reaper.daemon import run_daemon

    run_daemon(open_store(config), config.limits, config.routing)


def _say_hold(report: Report, limits: Limits) -> None:
    idle_s = report.idle_s()
    if idle_s is None or idle_s > limits.pass_window_s:
        ago = "there was never a pass" if idle_s is None else f"last pass {idle_s:.0f} s ago"
        first = f"passes take nothing back for the first {limits.lease_s:g} s"
        note(f"no reaper is running ({ago}): {first}")
    elif report.held:
        note(f"the reaper holds back: nothing is taken back for {report.hold_s:.1f} s")


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        print_line(line.text)


def _close(lines: Iterable[Line], problems: Iterable[str], as_json: bool, *, dry_run: bool) -> None:
    for problem in problems:
        note(f"warning: {problem}")
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "acts": [_facts(line) for line in lines],
                "problems": list(problems),
            }
        )
        return
    for hint in dict.fromkeys(line.hint for line in lines if line.hint):
        note(f"  → {hint}")
    if not lines:
        note("nothing to do")


def _facts(line: Line) -> dict[str, Any]:
    return {
        "act": line.edge,
        "task": line.task or None,
        "worker": line.worker or None,
        "reason": line.reason or None,
        "evidence": line.evidence or None,
        "queue": line.queue or None,
        "homes": list(line.homes),
        "message": line.message or None,
        "hint": line.hint or None,
        "line": line.text,
    }
