"""Where a request goes: its domain, its model, its queue, and every reason on the way.

A pure function of the request, the snapshot and the configuration, so ``cogrid route``, ``explain``
and the coordinator cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cogrid.model.limits import Limits
from cogrid.model.names import Queue, shared_queue
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.rules.domain import classify
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.homes import supports, why_no_home
from cogrid.rules.moment import Moment
from cogrid.rules.near import near
from cogrid.rules.pick import fits, incapable, must_support, pick_model
from cogrid.rules.request import AUTO, Ask, NoRoute, NoRouteKind, Route
from cogrid.rules.routing import Routing
from cogrid.rules.wait import ahead, wait_s

__all__ = [
    "AUTO",
    "Ask",
    "NoRoute",
    "NoRouteKind",
    "Pool",
    "Route",
    "Routing",
    "best_pool",
    "must_support",
    "pools_of",
    "route",
]

GUESS_S = 10.0
"""Seconds a task is taken to need where no rate was measured; only used to compare pools."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool's seats for a model. free: slots that nothing waits for. wait_s: at the measured
    rate, 0 where it is none or not known. rank_s: the same or a guess, for comparing pools."""

    name: str
    seats: tuple[Seat, ...]
    queue: Queue
    free: int
    wait_s: float
    rank_s: float

    @property
    def ids(self) -> tuple[str, ...]:
        """The workers that may take from its shared queue."""
        return tuple(seat.worker.id for seat in self.seats)


def route(ask: Ask, snapshot: Snapshot | Grid, routing: Routing, limits: Limits) -> Route | NoRoute:
    """The queue for a request. Pass a ``Grid`` where many requests meet one snapshot."""
    grid = snapshot if isinstance(snapshot, Grid) else Grid.of(snapshot, limits)
    classified = classify(ask.prompt, routing.domains)
    reasons = [f"domain {classified.domain}: {classified.reason}"]
    found = _queue(ask, classified.domain, grid, routing, limits, reasons)
    if isinstance(found, NoRoute):
        told = (*reasons, *found.reasons)
        return replace(found, domain=classified.domain, reasons=told)
    return found


def pools_of(
    seats: tuple[Seat, ...], model: str, ask: Ask, grid: Grid, routing: Routing
) -> tuple[Pool, ...]:
    """The open pools in which the model has one of these seats, preferred first."""
    names = {seat.worker.pool for seat in seats}.difference(routing.closed)
    order = {name: place for place, name in enumerate(routing.pools)}
    ordered = sorted(names, key=lambda name: (order.get(name, len(order)), name))
    return tuple(_pool(name, seats, model, ask, grid) for name in ordered)


def best_pool(pools: tuple[Pool, ...]) -> Pool:
    """The first pool with a free slot, else the one with the shortest expected wait."""
    return next((p for p in pools if p.free), None) or min(pools, key=lambda pool: pool.rank_s)


def _queue(
    ask: Ask, domain: str, grid: Grid, routing: Routing, limits: Limits, reasons: list[str]
) -> Route | NoRoute:
    if ask.worker and ask.worker not in grid.workers:
        message = f"worker '{ask.worker}' is not known to this grid"
        return NoRoute(NoRouteKind.UNKNOWN_WORKER, message, near(ask.worker, grid.workers))
    picked = pick_model(ask, domain, grid, routing, limits)
    if isinstance(picked, NoRoute):
        return picked
    model, why = picked
    reasons.append(f"model {model}: {why}")
    seats = _fitting(ask, model, grid, reasons)
    if not seats:
        return incapable(ask, model)
    reasons.append(f"homes: {', '.join(_shown(seat) for seat in seats)}")
    if ask.worker and not _able(ask.worker, seats):
        why = _why_not(grid.workers[ask.worker], model, grid, limits)
        reasons.append(f"worker {ask.worker} was asked for: {why}")
    pools = pools_of(seats, model, ask, grid, routing)
    best = best_pool(pools) if pools else None
    own = _meant(ask, seats, routing, reasons) or (
        best and _strict(best, model, ask, grid, reasons)
    )
    if own:
        shared = best.queue if best else own.worker.shared(model)
        return _to_own(own, shared, model, domain, ask, grid, reasons)
    if best:
        return _to_shared(best, model, domain, ask, reasons)
    closed = ", ".join(sorted({seat.worker.pool for seat in seats}))
    message = f"model '{model}' is only in a closed pool ({closed}): ask for one of its workers"
    return NoRoute(NoRouteKind.NO_HOME, message, model=model)


def _fitting(ask: Ask, model: str, grid: Grid, reasons: list[str]) -> tuple[Seat, ...]:
    """The homes that can do it; of those, where some can, the ones that also do the extras."""
    seats = tuple(seat for seat in grid.homes[model] if fits(seat, ask))
    extras = [need for need in ask.needs if need in ("tools", "thinking")]
    able = tuple(seat for seat in seats if supports(seat.offer, extras))
    if seats and not able:
        reasons.append(f"no home of {model} does {' and '.join(extras)}: sent all the same")
    return able or seats


def _shown(seat: Seat) -> str:
    worker = seat.worker
    if not seat.able:
        how = seat.offer.state if seat.offer.state != "ok" else worker.state
        return f"{worker.id} ({worker.pool}, {how.value})"
    return f"{worker.id} ({worker.pool}, {worker.free} of {worker.slots} free)"


def _pool(name: str, seats: tuple[Seat, ...], model: str, ask: Ask, grid: Grid) -> Pool:
    here = tuple(seat for seat in seats if seat.worker.pool == name)
    queue = grid.queue(shared_queue(name, model))
    slots = sum(seat.worker.slots for seat in here if seat.able)
    before = ahead(queue, ask.band, ask.user)
    free = max(0, sum(seat.free for seat in here) - before)
    expected_s = 0.0 if free else wait_s(queue, ask.band, ask.user)
    guess_s = (before + 1) * GUESS_S / slots if slots else float("inf")
    rank_s = expected_s if expected_s and slots else guess_s
    return Pool(name, here, queue.name, free, expected_s, rank_s)


def _able(worker_id: str, seats: tuple[Seat, ...]) -> Seat | None:
    return next((seat for seat in seats if seat.able and seat.worker.id == worker_id), None)


def _meant(ask: Ask, seats: tuple[Seat, ...], routing: Routing, reasons: list[str]) -> Seat | None:
    """The worker whose own queue is meant: asked for by name, else for affinity."""
    if ask.worker:
        seat = _able(ask.worker, seats)
        if seat:
            reasons.append(f"worker {ask.worker}: asked for by name")
        return seat
    seat = _able(ask.affinity, seats) if ask.affinity else None
    if seat is None or seat.worker.pool in routing.closed:
        return None
    if not seat.free and any(other.free for other in seats):
        reasons.append(f"worker {ask.affinity} has this conversation but is full, others are free")
        return None
    reasons.append(f"worker {ask.affinity}: has this conversation")
    return seat


def _why_not(worker: Worker, model: str, grid: Grid, limits: Limits) -> str:
    why = why_no_home(worker, model, Moment.of(grid.snapshot, limits))
    return why or f"it is {worker.state.value}, and its {model} cannot do this now"


def _strict(best: Pool, model: str, ask: Ask, grid: Grid, reasons: list[str]) -> Seat | None:
    """A worker for its own queue where the shared one could hand the task to another of the pool
    whose model of the same name cannot do it (no vision there, say)."""
    if all(fits(seat, ask) for seat in grid.homes[model] if seat.worker.pool == best.name):
        return None
    seat = max((s for s in best.seats if s.able), key=lambda seat: seat.free, default=None)
    if seat:
        reasons.append(f"worker {seat.worker.id}: others of pool {best.name} cannot do this")
    return seat


def _to_own(
    seat: Seat,
    shared: Queue,
    model: str,
    domain: str,
    ask: Ask,
    grid: Grid,
    reasons: list[str],
) -> Route:
    worker = seat.worker
    queue = grid.queue(worker.queue)
    reasons.append(f"queue {queue.name}")
    expected_s = 0.0 if seat.free > queue.depth else wait_s(queue, ask.band, ask.user)
    return Route(
        model=model,
        domain=domain,
        queue=queue.name,
        shared_queue=shared,
        pool=worker.pool,
        band=ask.band,
        candidates=(worker.id,),
        expected_wait_s=expected_s,
        reasons=tuple(reasons),
    )


def _to_shared(pool: Pool, model: str, domain: str, ask: Ask, reasons: list[str]) -> Route:
    if pool.free:
        free = ", ".join(seat.worker.id for seat in pool.seats if seat.free)
        reasons.append(f"pool {pool.name}: free slot on {free}")
    else:
        told = f", {pool.wait_s:.1f} s" if pool.wait_s else ""
        reasons.append(f"pool {pool.name}: no slot free anywhere, the shortest wait{told}")
    reasons.append(f"queue {pool.queue}: whoever is free takes it")
    return Route(
        model=model,
        domain=domain,
        queue=pool.queue,
        shared_queue=pool.queue,
        pool=pool.name,
        band=ask.band,
        candidates=pool.ids,
        expected_wait_s=pool.wait_s,
        reasons=tuple(reasons),
    )
