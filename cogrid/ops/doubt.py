"""What may be said of a grid of which our user may not read everything: nothing that would only
follow from what is missing."""

from __future__ import annotations

from collections.abc import Collection

from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.rules.health import health
from cogrid.rules.moment import Moment
from cogrid.store.gaps import FLEET, Part

UNKNOWN = "unknown"


def fleet_unknown(unread: Collection[Part]) -> bool:
    """True where it cannot be told which worker is well."""
    return bool(FLEET.intersection(unread))


def health_word(
    worker: Worker, snapshot: Snapshot, limits: Limits, unread: Collection[Part]
) -> str:
    """How a worker is, ``unknown`` where that cannot be told."""
    if fleet_unknown(unread):
        return UNKNOWN
    return health(worker, Moment.of(snapshot, limits))
