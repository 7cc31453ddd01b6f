"""Single points of failure: models that one death would take from the grid."""

from __future__ import annotations

import shlex

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import State, Task
from cogrid.model.worker import Worker
from cogrid.rules.grid import Grid
from cogrid.rules.homes import all_models, why_no_home
from cogrid.rules.mend import RUN_DEMO, spof, unlearn
from cogrid.rules.moment import Moment
from cogrid.rules.waiting import queued

NO_HOME = "no_home"
SINGLE_WORKER = "single_worker"
SINGLE_HOST = "single_host"
KINDS = (NO_HOME, SINGLE_WORKER, SINGLE_HOST)
"""Worst first; the findings come in this order."""


def single_points(
    snapshot: Snapshot, limits: Limits, model: str | None = None
) -> tuple[Finding, ...]:
    """Models that nobody, one worker or one host can serve now. model: only this one."""
    grid = Grid.of(snapshot, limits)
    waits = queued(snapshot)
    tasks: dict[str, list[Task]] = {}
    for task in snapshot.tasks:
        if not task.state.terminal:
            tasks.setdefault(task.model, []).append(task)
    models = {*all_models(snapshot), *waits, *tasks} if model is None else {model}
    found = []
    for each in models:
        able = [seat.worker for seat in grid.homes.get(each, ()) if seat.capable]
        if len({_host(worker) for worker in able}) <= 1:
            evidence = (*_evidence(each, able, snapshot, limits), f"{waits[each]} queued")
            found.append(_finding(each, able, grid, evidence, tasks.get(each, [])))
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.subject)))


def _finding(
    model: str, able: list[Worker], grid: Grid, evidence: tuple[str, ...], tasks: list[Task]
) -> Finding:
    if not able:
        kind, what = NO_HOME, f"no worker can serve {model}"
    elif len(able) == 1:
        kind, what = SINGLE_WORKER, f"only {able[0].id} can serve {model}"
    else:
        ids = ", ".join(worker.id for worker in able)
        kind, what = SINGLE_HOST, f"all workers that can serve {model} ({ids}) are on one host"
    running = sum(task.state is State.RUNNING for task in tasks)
    cure, mend = _cure(model, able, grid)
    if not able and not tasks and _is_left_behind(model, grid):
        cure += f"; where nobody wants it any more: {unlearn(model)}"
        mend = mend or unlearn(model)
    return Finding(
        kind=kind,
        subject=model,
        what=f"{what}; {cure}",
        evidence="; ".join((*evidence, f"{running} running") if running else evidence),
        mend=mend,
        at_risk=tuple(task.id for task in tasks),
    )


def _is_left_behind(model: str, grid: Grid) -> bool:
    """True where all that is left of it is that the grid knows it."""
    snapshot = grid.snapshot
    asked = queued(snapshot)[model] or any(worker.offer(model) for worker in snapshot.workers)
    return model in snapshot.model_homes and not asked


def _cure(model: str, able: list[Worker], grid: Grid) -> tuple[str, str]:
    """What to do on a host that is up and does not share the others' fate, and the command for it;
    "" where no host that is there could get the model."""
    if model == DEMO_MODEL:
        where = "another machine" if able else "any machine"
        return f"it is built in: run `{RUN_DEMO}` on {where}", ""
    taken = {_host(worker) for worker in able}
    spare = [w for w in _up(grid) if _host(w) not in taken and not w.demo]
    if not spare:
        return "add a worker on another machine that has it", ""
    best = max(spare, key=lambda worker: (worker.pulls, worker.free, worker.slots))
    if best.pulls:
        return f"run `ollama pull {shlex.quote(model)}` on {_host(best)}", spof(model)
    return f"add it to the engine of {best.id} on {_host(best)}", ""


def _host(worker: Worker) -> str:
    """Where it runs; a worker that does not say counts as a host of its own."""
    return worker.host or worker.id


def _up(grid: Grid) -> list[Worker]:
    """Workers that serve some model now."""
    serving = {seat.worker.id for seats in grid.homes.values() for seat in seats if seat.able}
    return [worker for worker in grid.snapshot.workers if worker.id in serving]


def _evidence(
    model: str, able: list[Worker], snapshot: Snapshot, limits: Limits
) -> tuple[str, ...]:
    capable = {worker.id for worker in able}
    facts = [f"worker {worker.id}, host {worker.host or 'unknown'}" for worker in able]
    facts += [
        f"{worker.id}: {_not_capable(worker, model, snapshot, limits)}"
        for worker in snapshot.workers
        if worker.id not in capable and worker.offer(model)
    ]
    last_ms = snapshot.model_homes.get(model)
    if not able and last_ms:
        facts.append(f"last home {max(0, snapshot.taken_at_ms - last_ms) / 1000:.0f} s ago")
    return tuple(facts)


def _not_capable(worker: Worker, model: str, snapshot: Snapshot, limits: Limits) -> str:
    return why_no_home(worker, model, Moment.of(snapshot, limits)) or "model in quarantine"
