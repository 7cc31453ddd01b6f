"""How it is shown how chores get on: bars on a terminal, lines in a pipe, documents with --json."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cogrid.cli.consent import ask
from cogrid.cli.output import clean, note, print_json, print_line
from cogrid.cli.size import size
from cogrid.errors import Exit

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cogrid.ops.chores import Step, Wanted
    from cogrid.store.client import Store

TENTHS = 10
"""In a pipe a line says where a pull stands each time it has got a tenth further."""


def have_done(
    store: Store,
    wanted: tuple[Wanted, ...],
    question: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Show what is wanted, ask, and have it done; the exit code."""
    from cogrid.ops.chores import Chores
    from cogrid.ops.operator import operator

    if dry_run:
        if as_json:
            print_json(Chores(True, None, wanted))
        else:
            for line in said(wanted):
                print_line(f"would {line}")
        return Exit.OK
    if not as_json:
        for line in said(wanted):
            note(line)
    ask(question, yes)
    done = Chores(False, operator(), wanted, carry_out(store, wanted, as_json))
    if as_json:
        print_json(done)
    else:
        print_outcome(done.chores)
    return Exit.FAILED if done.failed else Exit.OK


def carry_out(store: Store, wanted: tuple[Wanted, ...], as_json: bool) -> tuple[Step, ...]:
    """Has it done and shows it; interrupted, it is cancelled."""
    from cogrid.ops.chores import begin, follow, stop

    begun = steps = begin(store, wanted)
    try:
        for now in _shown(follow(store, begun), as_json):
            steps = now
    except KeyboardInterrupt:
        stop(store, steps)
        note("cancelled")
        raise
    return steps


def print_outcome(steps: tuple[Step, ...]) -> None:
    """A line for each: what is there now, or why it is not."""
    words = {"pull": "has", "remove": "no longer has", "warm": "has loaded"}
    for step in steps:
        if step.done:
            print_line(f"{step.worker} {words[step.kind]} {step.model}")
        else:
            why = f": {step.message}" if step.message else ""
            print_line(f"{step.worker}: {step.kind} of {step.model} {step.state}{why}")


def said(wanted: tuple[Wanted, ...]) -> list[str]:
    """What would be done, a line each."""
    return [f"{each.kind} {each.model} on {each.worker}" for each in wanted]


def _shown(looks: Iterator[tuple[Step, ...]], as_json: bool) -> Iterator[tuple[Step, ...]]:
    if as_json:
        return _documents(looks)
    return _bars(looks) if sys.stderr.isatty() else _lines(looks)


def _documents(looks: Iterator[tuple[Step, ...]]) -> Iterator[tuple[Step, ...]]:
    before: tuple[Step, ...] = ()
    for steps in looks:
        for step in steps:
            if step not in before and step.status and not step.over:
                print_json({"progress": {name: getattr(step, name) for name in _FIELDS}})
        before = steps
        yield steps


_FIELDS = ("task", "kind", "model", "worker", "state", "status", "completed_bytes", "total_bytes")


def _lines(looks: Iterator[tuple[Step, ...]]) -> Iterator[tuple[Step, ...]]:
    before: dict[str, str] = {}
    for steps in looks:
        for step in steps:
            line = f"{step.worker}: {step.model}: {_told(step)}"
            if _told(step) and before.get(step.task) != line:
                before[step.task] = line
                note(line)
        yield steps


def _told(step: Step) -> str:
    """Its phase, and how much of it in tenths."""
    if step.over or not step.status:
        return ""
    if not step.total_bytes or step.completed_bytes is None or not _pulls(step):
        return step.status
    tenths = step.completed_bytes * TENTHS // step.total_bytes
    return f"pulling {tenths * 100 // TENTHS} % of {size(step.total_bytes)}"


def _pulls(step: Step) -> bool:
    """True while parts come in; their names change and tell nobody anything."""
    return step.status.startswith("pulling ")


def _bars(looks: Iterator[tuple[Step, ...]]) -> Iterator[tuple[Step, ...]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        bars: dict[str, TaskID] = {}
        for steps in looks:
            for step in steps:
                _bar(shown, bars, step)
            yield steps


def _bar(shown: Progress, bars: dict[str, TaskID], step: Step) -> None:
    title = clean(f"{step.worker} {step.model} {step.state if step.over else step.status}")
    if step.task not in bars:
        bars[step.task] = shown.add_task(title, total=None)
    total = step.total_bytes or None
    shown.update(
        bars[step.task],
        description=title,
        total=total,
        completed=total if step.done else step.completed_bytes or 0,
    )
