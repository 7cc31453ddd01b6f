"""How it is printed what hangs on a worker, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cogrid.cli.output import print_table

if TYPE_CHECKING:
    from cogrid.ops.trail import Went
    from cogrid.rules.leaving import Leaving


def say_leaving(plan: Leaving, say: Callable[[object], None]) -> None:
    """What would be touched, a line each."""
    runs = f" ({', '.join(plan.runs)})" if plan.runs else ""
    where = f" on {plan.host}" if plan.host else ""
    say(f"worker {plan.worker}{where} is {plan.health.value}")
    say(f"  runs {len(plan.runs)}{runs}")
    say(f"  {plan.waiting} in {plan.queue}, which move to other workers")
    if plan.only_here:
        say(f"  nobody else serves {', '.join(plan.only_here)}: new requests for that will fail")


def print_went(tasks: tuple[Went, ...]) -> None:
    """Where each task went."""
    if tasks:
        print_table(
            "Tasks",
            ("TASK", "WHAT", "STATE", "QUEUE", "WORKER", "WHY"),
            ((t.task, t.how, t.state, t.queue, t.worker, t.reason) for t in tasks),
            ("STATE",),
        )
