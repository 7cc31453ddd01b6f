"""Where a model is at home: on a worker that is there, works, and has it.

A task whose model has no home anywhere waits for nothing; a *capable* worker is a home that would
take it now.
"""

from __future__ import annotations

from collections.abc import Iterable

from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Offer, OfferState, Worker, WorkerState
from cogrid.rules.health import ghost_evidence, is_dead, is_ghost
from cogrid.rules.moment import Moment


def is_home(worker: Worker, model: str, at: Moment) -> bool:
    """True when a task for the model may wait for this worker: it is up and the model counts."""
    offer = worker.offer(model)
    return offer is not None and counts(offer, at) and is_up(worker, at)


def is_up(worker: Worker, at: Moment) -> bool:
    """True when its lease runs and it is neither a ghost nor draining. ``starting`` and ``away``
    count: such a worker is back within its lease, so a restart loses no queue."""
    return (
        worker.known
        and worker.state is not WorkerState.DRAINING
        and not is_dead(worker, at.now_ms)
        and not is_ghost(worker, at)
    )


def counts(offer: Offer, at: Moment) -> bool:
    """True unless the model failed there, is missing, or has been in quarantine for longer than
    ``quarantine_home_s``. A quarantine of unknown age still counts: to fail a task is final, and
    its own queue limit ends a wait that was in vain."""
    if offer.state in (OfferState.FAILED, OfferState.MISSING):
        return False
    if offer.state is not OfferState.QUARANTINED or not offer.since_ms:
        return True
    return at.now_ms - offer.since_ms <= at.limits.quarantine_home_s * 1000


def homes(snapshot: Snapshot, model: str, limits: Limits) -> tuple[Worker, ...]:
    """The model's homes, in the order of the snapshot."""
    at = Moment.of(snapshot, limits)
    return tuple(worker for worker in snapshot.workers if is_home(worker, model, at))


def capable(snapshot: Snapshot, model: str, limits: Limits) -> tuple[Worker, ...]:
    """The homes that have the model unquarantined."""
    return tuple(w for w in homes(snapshot, model, limits) if not _quarantined(w, model))


def all_models(snapshot: Snapshot) -> tuple[str, ...]:
    """Every model the grid knows of, sorted: offered by any worker, or at home here once."""
    return tuple(
        sorted({o.name for w in snapshot.workers for o in w.offers} | set(snapshot.model_homes))
    )


def supports(offer: Offer, needs: Iterable[str]) -> bool:
    """True when the model, there, can do all of it (chat, embed, vision, tools, thinking)."""
    return all(need in offer.supports for need in needs)


def why_no_home(worker: Worker, model: str, at: Moment) -> str:
    """Why the worker is no home of the model, in a few words; "" when it is one."""
    if is_home(worker, model, at):
        return ""
    if is_dead(worker, at.now_ms):
        return "dead"
    if not worker.known:
        return "its hash is gone, it has to register again"
    if is_ghost(worker, at):
        return f"ghost: {ghost_evidence(worker, at.now_ms)}"
    if worker.state is WorkerState.DRAINING:
        return "draining"
    offer = worker.offer(model)
    if offer is None:
        return "does not have the model"
    because = f": {offer.reason}" if offer.reason else ""
    if offer.state is OfferState.QUARANTINED:
        return f"model in quarantine for {(at.now_ms - offer.since_ms) / 1000:.0f} s{because}"
    return f"model {offer.state.value}{because}"


def _quarantined(worker: Worker, model: str) -> bool:
    offer = worker.offer(model)
    return offer is not None and offer.state is OfferState.QUARANTINED
