"""``cogrid status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogrid.cli.answer import answer
from cogrid.cli.documents import answers
from cogrid.cli.duration import shown
from cogrid.cli.options import narrowing, with_config, with_json
from cogrid.cli.output import (
    note,
    on_terminal,
    print_gap,
    print_heading,
    print_line,
    print_prose,
    print_table,
)
from cogrid.cli.worker_table import print_workers
from cogrid.errors import Exit

if TYPE_CHECKING:
    from cogrid.config import Config
    from cogrid.ops.status import Status


@click.command()
@narrowing
@click.option("--watch", is_flag=True, help="Again every two seconds, until interrupted.")
@click.option("--check", is_flag=True, help="Exit with 3 when something needs attention.")
@answers("cogrid.ops.status:Status", "With --watch: one Status a line, every two seconds.")
@with_json
@with_config
def command(
    config: Config, worker: str, pool: str, model: str, watch: bool, check: bool, as_json: bool
) -> int:
    """Workers, queues, tasks, reaper and Redis at a glance.

    \b
    cogrid status
    cogrid status --pool gpu --watch
    cogrid status --json | jq '.workers[] | select(.health != "healthy")'
    cogrid status --check || mail -s "the grid needs you" me
    """
    import time

    from cogrid.cli.connect import open_view
    from cogrid.ops.status import Only, status

    store = open_view(config)
    while True:
        found = status(store, config.limits, Only(worker, pool, model))
        if watch and not as_json and on_terminal():
            click.clear()
        code: int = Exit.FINDINGS if check and found.findings else Exit.OK
        code = answer(store, found, as_json, _print, code)
        if not watch:
            return code
        time.sleep(2)


def _print(found: Status) -> None:
    print_workers(found.workers)
    for title, nobody in (("Queues", False), ("Queues that nobody serves", True)):
        queues = [queue for queue in found.queues if (queue.servable is False) is nobody]
        if queues:
            print_gap()
            print_table(
                title,
                ("QUEUE", "DEPTH", "OLDEST"),
                ((queue.name, queue.depth, shown(queue.oldest_s)) for queue in queues),
            )
    print_heading("Tasks")
    print_line(", ".join(f"{_count(count)} {state}" for state, count in found.tasks.items()))
    print_heading("Reaper")
    print_line(_reaper(found))
    print_heading("Redis")
    print_prose(_redis(found))
    for warning in found.warnings:
        note(f"warning: {warning}")


def _reaper(found: Status) -> str:
    if found.reaper["last_pass_age_s"] is None:
        return "no pass is known of"
    holds = found.reaper["holding_s"]
    why = "it or Redis was away, and workers need that long to be seen again"
    held = f", takes nothing back for another {shown(holds)} ({why})" if holds else ""
    return f"last pass {shown(found.reaper['last_pass_age_s'])} ago{held}"


def _redis(found: Status) -> str:
    redis = found.redis
    facts = (
        f"{redis['flavour']} {redis['version']}" if redis["version"] else "version unknown",
        f"role {redis['role'] or 'unknown'}",
        f"maxmemory-policy {redis['maxmemory_policy'] or 'unknown'}",
        f"append-only {_on(redis['append_only'])}",
        redis["url"],
    )
    return ", ".join(facts)


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def _on(value: bool | None) -> str:
    return "unknown" if value is None else "on" if value else "off"
