"""Options that say which tasks are meant, and how it is printed what was done to them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from cogrid.cli.consent import ask
from cogrid.cli.duration import seconds
from cogrid.cli.output import note, print_json, print_line, print_table
from cogrid.errors import Exit
from cogrid.rules.counted import counted

if TYPE_CHECKING:
    from cogrid.ops.deeds import Deeds

SHOWN = 10
"""Tasks that are named before the question."""


def with_choice(states: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Ids, filters, ``--all`` and ``--limit``; the command gets ``choice``. states: what
    ``--state`` takes; without any there is no such option."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("ids", nargs=-1, metavar="[TASK]...")
        @click.option("--model", default="", metavar="NAME", help="Only of this model.")
        @click.option("--user", default="", metavar="NAME", help="Only of this user.")
        @click.option("--queue", default="", metavar="NAME", help="Only of this queue.")
        @click.option("--worker", default="", metavar="NAME", help="Only that it runs or ran.")
        @click.option("--older-than", type=seconds, metavar="DURATION", help="E.g. 10m, 2h, 7d.")
        @click.option("--all", "every", is_flag=True, help="All there are.")
        @click.option(
            "--limit", type=click.IntRange(min=1), default=1000, metavar="N",
            help="At most so many, the oldest first (1000).",
        )  # fmt: skip
        @functools.wraps(command)
        def chosen(
            *args: Any, ids: tuple[str, ...], model: str, user: str, queue: str, worker: str,
            older_than: float | None, every: bool, limit: int, states: tuple[str, ...] = (),
            **more: Any,
        ) -> Any:  # fmt: skip
            from cogrid.model.names import normal_model
            from cogrid.ops.chosen import Choice

            choice = Choice(
                ids, states, normal_model(model), user, queue, worker, older_than, every, limit
            )
            return command(*args, choice=choice, **more)

        if not states:
            return chosen
        option = click.option(
            "--state",
            "states",
            type=click.Choice(states),
            multiple=True,
            help="Only in this state.",
        )
        return option(chosen)

    return decorate


def carry_out(
    plan: Deeds, question: str, do: Callable[[], Deeds], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Show the plan, ask, do it, print what was done; the exit code. question: with ``{}`` for how
    many tasks."""
    todo = len(plan.tasks) - plan.failed
    if dry_run or not todo:
        _print(plan, as_json)
        return Exit.FAILED if plan.failed and not dry_run else Exit.OK
    if not as_json and not yes:
        _preview(plan)
    ask(question.format(counted(todo, "task")), yes)
    done = do()
    _print(done, as_json)
    return Exit.FAILED if done.failed else Exit.OK


def _preview(plan: Deeds) -> None:
    for task in plan.tasks[:SHOWN]:
        queue = f" → {task.queue}" if task.queue else ""
        note(f"{task.id}  {task.state}  {task.model}  {task.user}  {task.result}{queue}")
    if len(plan.tasks) > SHOWN:
        note(f"and {len(plan.tasks) - SHOWN} more")


def _print(deeds: Deeds, as_json: bool) -> None:
    if as_json:
        print_json(deeds)
        return
    if deeds.tasks:
        print_table(
            "Tasks",
            ("TASK", "WAS", "MODEL", "USER", "RESULT", "QUEUE"),
            ((t.id, t.state, t.model, t.user, t.result, t.queue) for t in deeds.tasks),
            ("USER",),
        )
    else:
        print_line("no task fits")
    if deeds.fitting > len(deeds.tasks):
        note(f"{len(deeds.tasks)} of {deeds.fitting} that fit: --limit takes more")
    if deeds.cut:
        note("there are more tasks than were looked at: do it again")
