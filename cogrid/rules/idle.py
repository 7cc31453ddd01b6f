"""Why a worker has nothing to do, or takes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, TaskId
from cogrid.model.task import Task
from cogrid.model.worker import Health, OfferState, Worker, WorkerState
from cogrid.rules.counted import counted
from cogrid.rules.ghosts import cure
from cogrid.rules.grid import Grid
from cogrid.rules.health import ghost_evidence, health, is_dead, wedged_evidence
from cogrid.rules.mend import show, strike_off
from cogrid.rules.moment import Moment
from cogrid.rules.routing import Routing
from cogrid.rules.seen import WISH_DRAIN
from cogrid.rules.takers import slots_taken, taker
from cogrid.rules.waiting import queued
from cogrid.rules.zombies import lease_evidence

_GONE = (Health.DEAD, Health.GHOST)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Tasks that wait and that the worker does not take. tasks: as many as wait behind the one that
    was looked at, itself included. why: of the first."""

    queue: Queue
    task: TaskId
    model: str
    tasks: int
    why: str


@dataclass(frozen=True, slots=True)
class Idle:
    """what: the answer in one sentence. wrong: something should be done about it, by ``mend``.
    reasons: everything that keeps it from work. takes: queues of which it takes the next task at
    its next claim."""

    worker: str
    health: Health
    what: str
    wrong: bool = False
    mend: str = ""
    reasons: tuple[str, ...] = ()
    takes: tuple[Queue, ...] = ()
    blocked: tuple[Blocked, ...] = ()


def why_idle(
    worker: Worker,
    heads: Mapping[Queue, Iterable[Task]],
    grid: Grid,
    routing: Routing,
    limits: Limits,
) -> Idle:
    """heads: the first tasks of each queue that is not empty."""
    snapshot = grid.snapshot
    word = health(worker, Moment.of(snapshot, limits))
    takes, blocked = _looked_at(worker, heads, grid, limits)
    rule = why_excluded(worker, snapshot.taken_at_ms, limits)
    wrong = word in _GONE or word is Health.WEDGED or bool(rule and not _on_purpose(worker))
    return Idle(
        worker=worker.id,
        health=word,
        what=_what(worker, word, rule, takes, blocked, grid),
        wrong=wrong,
        mend=_mend(worker, word, grid) if wrong else "",
        reasons=(*_models(worker), *_pool(worker, routing)),
        takes=takes,
        blocked=blocked,
    )


def why_excluded(worker: Worker, now_ms: int, limits: Limits) -> str:
    """The rule by which nothing at all is handed to a worker whose lease runs; "" where there is
    none."""
    if is_dead(worker, now_ms):
        return ""
    if worker.wish.state == WISH_DRAIN:
        return f"it was asked to drain{f' by {worker.wish.by}' if worker.wish.by else ''}"
    if worker.state is not WorkerState.READY:
        return f"it is {worker.state.value}"
    if worker.slots < 1:
        return "it has no slots"
    if not worker.offers:
        return "it offers no model"
    if not any(offer.state is OfferState.OK for offer in worker.offers):
        states = ", ".join(sorted({offer.state.value for offer in worker.offers}))
        return f"none of its models can be used ({states})"
    return ""


def _on_purpose(worker: Worker) -> bool:
    """Somebody wanted it so, or it passes by itself."""
    if worker.wish.state == WISH_DRAIN or worker.state is not WorkerState.READY:
        return True
    return any(offer.state is OfferState.PROBING for offer in worker.offers)


def _looked_at(
    worker: Worker, heads: Mapping[Queue, Iterable[Task]], grid: Grid, limits: Limits
) -> tuple[tuple[Queue, ...], tuple[Blocked, ...]]:
    takes, blocked = [], []
    for queue, tasks in heads.items():
        first = next(iter(tasks), None)
        if first is None:
            continue
        answer = taker(worker, first, grid, limits)
        if answer.now:
            takes.append(queue)
        else:
            depth = grid.queue(queue).depth
            blocked.append(Blocked(queue, first.id, first.model, depth, answer.why))
    return tuple(takes), tuple(blocked)


def _what(
    worker: Worker,
    word: Health,
    rule: str,
    takes: tuple[Queue, ...],
    blocked: tuple[Blocked, ...],
    grid: Grid,
) -> str:
    now_ms = grid.snapshot.taken_at_ms
    if word is Health.DEAD:
        return f"{worker.id} is dead: {lease_evidence(worker, now_ms)}"
    if word is Health.GHOST:
        return f"{worker.id} is a ghost: {ghost_evidence(worker, now_ms)}"
    if word is Health.WEDGED:
        return f"{worker.id} is wedged: {wedged_evidence(worker, now_ms)}"
    if rule:
        return f"{worker.id} is handed nothing: {rule}"
    if not worker.free:
        return f"{worker.id} is not idle: {slots_taken(worker)}"
    if takes:
        return f"{worker.id} takes from {', '.join(takes)} at its next claim"
    if not blocked:
        return f"{worker.id} is idle because nothing waits anywhere"
    waiting = sum(each.tasks for each in blocked)
    return f"{worker.id} is idle: {counted(waiting, 'task')} waiting, none of them for it"


def _models(worker: Worker) -> list[str]:
    return [
        f"model {offer.name} {offer.state.value}" + (f": {offer.reason}" if offer.reason else "")
        for offer in worker.offers
        if offer.state is not OfferState.OK
    ]


def _pool(worker: Worker, routing: Routing) -> list[str]:
    if worker.pool not in routing.closed:
        return []
    return [f"its pool {worker.pool} is closed: it gets only what asks for it by name"]


def _mend(worker: Worker, word: Health, grid: Grid) -> str:
    if word in _GONE:
        return cure(worker, grid, queued(grid.snapshot), ghost=word is Health.GHOST)
    return strike_off(worker.id) if word is Health.WEDGED else show(worker.id)
