"""How a list of workers is printed, by ``status`` and by ``worker list``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cogrid.cli.duration import shown
from cogrid.cli.output import on_terminal, print_table
from cogrid.cli.size import free_of

if TYPE_CHECKING:
    from cogrid.ops.status import LoadedRow, RunRow, WorkerRow

SHORT = 8
"""Characters of a task's id that a table shows on a terminal; every command takes them for the
whole id."""


def print_workers(workers: Iterable[WorkerRow]) -> None:
    """A row a worker."""
    print_table(
        "Workers",
        ("WORKER", "HEALTH", "POOL", "HOST", "SLOTS", "RENEWED", "POLLED", "MODELS", "RUNS",
         "LOADED", "MEMORY FREE", "DISK FREE"),
        map(_row, workers),
        ("DISK FREE", "MEMORY FREE", "RENEWED", "LOADED", "POLLED", "POOL"),
    )  # fmt: skip


def _row(worker: WorkerRow) -> tuple[object, ...]:
    return (
        worker.id,
        worker.health,
        worker.pool,
        worker.host,
        _slots(worker),
        shown(worker.beat_age_s),
        "never polled" if worker.poll_age_s is None else shown(worker.poll_age_s),
        ", ".join(worker.models),
        ", ".join(map(_run, worker.runs)),
        ", ".join(map(_loaded, worker.loaded)),
        free_of(worker.report.get("memory_free_bytes"), worker.report.get("memory_bytes")),
        free_of(worker.report.get("disk_free_bytes"), worker.report.get("disk_bytes")),
    )


def _slots(worker: WorkerRow) -> str:
    return "/".join("?" if each is None else str(each) for each in (worker.busy, worker.slots))


def _run(run: RunRow) -> str:
    task = run.id[:SHORT] if on_terminal() else run.id
    return f"{task} {run.model} {shown(run.age_s)}"


def _loaded(model: LoadedRow) -> str:
    if model.gpu_share is None:
        return model.name
    return f"{model.name} ({model.gpu_share:.0%} GPU)"
