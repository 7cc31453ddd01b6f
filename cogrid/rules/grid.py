"""A snapshot indexed for routing: made once a snapshot, looked into for every request."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import Queue
from cogrid.model.snapshot import QueueDepth, Snapshot
from cogrid.model.worker import Offer, OfferState, Worker, WorkerState
from cogrid.rules.homes import counts, is_up
from cogrid.rules.moment import Moment


@dataclass(frozen=True, slots=True)
class Seat:
    """One model on one worker that is its home. capable: the model is not in quarantine. able:
    the worker could take a task for it now, or as soon as a slot is free."""

    worker: Worker
    offer: Offer
    capable: bool
    able: bool

    @property
    def free(self) -> int:
        """Slots that would take a task for the model now."""
        return self.worker.free if self.able else 0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """homes: model -> its seats, in the order of the snapshot. known: every model that any worker
    offers or that was ever at home here. queues: those that are not empty, by name."""

    snapshot: Snapshot
    homes: dict[str, tuple[Seat, ...]]
    known: frozenset[str]
    workers: dict[str, Worker]
    queues: dict[str, QueueDepth]

    @staticmethod
    def of(snapshot: Snapshot, limits: Limits) -> Grid:
        """The index of a snapshot."""
        homes: dict[str, list[Seat]] = {}
        known, at = set(snapshot.model_homes), Moment.of(snapshot, limits)
        for worker in snapshot.workers:
            known.update(offer.name for offer in worker.offers)
            for seat in _seats(worker, at):
                homes.setdefault(seat.offer.name, []).append(seat)
        return Grid(
            snapshot,
            {model: tuple(seats) for model, seats in homes.items()},
            frozenset(known),
            {worker.id: worker for worker in snapshot.workers},
            {queue.name: queue for queue in snapshot.queues},
        )

    def queue(self, name: Queue) -> QueueDepth:
        """A queue's depth; an empty one where it has none."""
        return self.queues.get(name) or QueueDepth(name, 0)


def _seats(worker: Worker, at: Moment) -> list[Seat]:
    if not is_up(worker, at):
        return []
    ready = worker.state is WorkerState.READY
    return [
        Seat(
            worker,
            offer,
            offer.state is not OfferState.QUARANTINED,
            ready and offer.state is OfferState.OK,
        )
        for offer in worker.offers
        if counts(offer, at)
    ]
