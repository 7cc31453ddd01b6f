"""What the grid would lose with some of its workers: models, and tasks that wait for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cogrid.model.finding import Finding
from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL, WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.rules.counted import counted
from cogrid.rules.grid import Grid
from cogrid.rules.mend import RUN_DEMO, pull
from cogrid.rules.waiting import queued

LOST = "lost_model"
LEFT_WITH_ONE = "left_with_one"
HOMES = 2
"""So many workers leave nothing to be said of a model."""
KINDS = (LOST, LEFT_WITH_ONE)
"""The findings come in this order."""


@dataclass(frozen=True, slots=True)
class Loss:
    """models: what nobody could serve any more if this host, or this pool, were gone."""

    kind: str
    name: str
    workers: tuple[WorkerId, ...]
    models: tuple[str, ...]


def without(snapshot: Snapshot, workers: Collection[str], hosts: Collection[str]) -> Snapshot:
    """The snapshot in which these workers, and all workers of these hosts, are gone."""
    left = tuple(w for w in snapshot.workers if not _goes(w, workers, hosts))
    return replace(snapshot, workers=left)


def going(
    snapshot: Snapshot, workers: Collection[str], hosts: Collection[str]
) -> tuple[Worker, ...]:
    """The workers that would be gone."""
    return tuple(w for w in snapshot.workers if _goes(w, workers, hosts))


def loss(
    snapshot: Snapshot,
    workers: Collection[str],
    hosts: Collection[str],
    limits: Limits,
) -> tuple[Finding, ...]:
    """Models that would have no capable home then, or only one, and had more before."""
    before = Grid.of(snapshot, limits)
    after = Grid.of(without(snapshot, workers, hosts), limits)
    gone = going(snapshot, workers, hosts)
    waits = queued(snapshot)
    found = []
    for model in before.homes:
        had, has = _able(before, model), _able(after, model)
        if had and len(has) < len(had) and len(has) <= 1:
            found.append(_finding(model, has, gone, after, waits[model]))
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.subject)))


def losses(snapshot: Snapshot, limits: Limits) -> tuple[Loss, ...]:
    """Every host and every pool whose loss would take models away, with these models. The only
    pool is the whole grid, of which that need not be said."""
    grid = Grid.of(snapshot, limits)
    pools = {worker.pool for worker in snapshot.workers if worker.pool}
    found = [
        *_losses("host", {w.host or w.id for w in snapshot.workers}, grid),
        *(_losses("pool", pools, grid) if len(pools) > 1 else ()),
    ]
    return tuple(each for each in found if each.models)


def _losses(kind: str, names: Iterable[str], grid: Grid) -> Iterable[Loss]:
    """One pass over the seats for each kind, however many hosts there are."""
    only: dict[str, list[str]] = {name: [] for name in sorted(names)}
    for model in grid.homes:
        places = {_place(kind, worker) for worker in _able(grid, model)}
        if len(places) == 1:
            only[places.pop()].append(model)
    members: dict[str, list[WorkerId]] = {name: [] for name in only}
    for worker in grid.snapshot.workers:
        if _place(kind, worker) in members:
            members[_place(kind, worker)].append(worker.id)
    return (
        Loss(kind, name, tuple(sorted(members[name])), tuple(sorted(models)))
        for name, models in only.items()
    )


def _place(kind: str, worker: Worker) -> str:
    return worker.pool if kind == "pool" else worker.host or worker.id


def _goes(worker: Worker, workers: Collection[str], hosts: Collection[str]) -> bool:
    return worker.id in workers or (worker.host or worker.id) in hosts


def _able(grid: Grid, model: str) -> tuple[Worker, ...]:
    return tuple(seat.worker for seat in grid.homes.get(model, ()) if seat.capable)


def _finding(
    model: str, left: tuple[Worker, ...], gone: tuple[Worker, ...], after: Grid, waiting: int
) -> Finding:
    names = ", ".join(worker.id for worker in gone if worker.offer(model))
    if left:
        kind = LEFT_WITH_ONE
        what = f"without {names}, only {left[0].id} could serve {model}"
    else:
        kind, what = LOST, f"without {names}, no worker could serve {model}"
    spare = _spare(model, left, after)
    if model == DEMO_MODEL:
        what += f"; it is built in: run `{RUN_DEMO}` on another machine"
    elif not spare:
        what += "; add a worker on another machine that has it"
    verb = "would wait for nothing" if not left else "would wait for one worker"
    return Finding(
        kind,
        model,
        what,
        f"{counted(waiting, 'task')} queued for it now, which {verb}",
        pull(model, spare),
    )


def _spare(model: str, left: tuple[Worker, ...], after: Grid) -> tuple[WorkerId, ...]:
    """Workers that would still be there and could get it, as many as are needed for two homes, each
    on a host of its own."""
    if model == DEMO_MODEL:
        return ()
    taken = {_place("host", worker) for worker in left}
    found: list[WorkerId] = []
    up = {seat.worker.id for seats in after.homes.values() for seat in seats if seat.able}
    for worker in after.snapshot.workers:
        host = _place("host", worker)
        if worker.id in up and worker.pulls and host not in taken:
            taken.add(host)
            found.append(worker.id)
    return tuple(found[: HOMES - len(left)])
