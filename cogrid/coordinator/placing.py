"""Where a request goes, and whether it is let in, by what the coordinator knows now."""

from __future__ import annotations

from cogrid.coordinator.access import Caller
from cogrid.coordinator.affinity import key_of
from cogrid.coordinator.asked import Asked
from cogrid.coordinator.errors import RefusedError, store_refusal
from cogrid.coordinator.services import Services
from cogrid.model.names import queue_model, queue_pool, queue_worker
from cogrid.model.task import Band
from cogrid.rules.admission import Admitted, Refused, admit
from cogrid.rules.grid import Grid
from cogrid.rules.route import Ask, route


async def place(
    services: Services, asked: Asked, caller: Caller, worker: str, band: Band, size: int
) -> Admitted:
    """Route and admit; RefusedError. A snapshot that says no is read again before that."""
    found = _place(services, asked, caller, worker, band, size)
    refused = isinstance(found, Refused) and found.status in (404, 429, 503)
    if refused and await services.registry.freshen():
        found = _place(services, asked, caller, worker, band, size)
    if isinstance(found, Refused):
        if found.status == 503 and services.outage.error:
            # Workers that cannot renew look dead; what is wrong is Redis.
            raise store_refusal(services.outage.error)
        raise RefusedError(found.code, found.message, retry_after_s=found.retry_after_s)
    owner = queue_worker(found.route.queue)
    if owner:
        services.registry.placed[owner] += 1
    return found


def _place(
    services: Services, asked: Asked, caller: Caller, worker: str, band: Band, size: int
) -> Admitted | Refused:
    grid = services.registry.grid
    limits = services.config.limits
    ask = Ask(
        model=asked.model,
        kind=asked.kind,
        needs=asked.needs,
        prompt=asked.prompt,
        worker=worker,
        affinity=_affinity(services, asked, caller, grid),
        band=band,
        user=caller.user,
    )
    routed = route(ask, grid, services.config.routing, limits)
    return admit(routed, grid, limits, size, services.registry.age_s)


def _affinity(services: Services, asked: Asked, caller: Caller, grid: Grid) -> str:
    """The worker that has this conversation's cache, while it has a free slot."""
    if not asked.goes_on or not asked.conversation:
        return ""
    name = services.affinity.worker(key_of(caller.user, asked.model, *asked.conversation))
    worker = grid.workers.get(name)
    if worker is None or worker.free <= services.registry.placed[name]:
        return ""
    return name


def remember(services: Services, asked: Asked, caller: Caller, worker: str) -> None:
    """This worker has served the conversation."""
    if asked.conversation and worker and not asked.housekeeping:
        services.affinity.served(key_of(caller.user, asked.model, *asked.conversation), worker)


def may_take(services: Services, queue: str, model: str) -> tuple[str, ...]:
    """Who may take a task from that queue, as far as is known."""
    owner = queue_worker(queue)
    if owner:
        return (owner,)
    pool, wanted = queue_pool(queue), queue_model(queue) or model
    seats = services.registry.grid.homes.get(wanted, ())
    return tuple(seat.worker.id for seat in seats if seat.worker.pool == pool and seat.capable)
