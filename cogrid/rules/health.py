"""How a worker is: dead, a ghost, wedged, or one of the ordinary words.

A ghost is told by the worker alone. The age of a task says nothing: behind a busy worker every
healthy task grows old.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cogrid.model.worker import Health, OfferState, Worker, WorkerState
from cogrid.rules.counted import counted
from cogrid.rules.moment import Moment

ZOMBIES_IN_A_ROW = 3
"""So many zombie runs one after the other, with no good one between, make a worker wedged."""


def is_dead(worker: Worker, now_ms: int) -> bool:
    """True when no lease speaks for it: run out, or never there (a hash left over)."""
    return worker.lease_until_ms is None or worker.lease_until_ms < now_ms


def is_ghost(worker: Worker, at: Moment) -> bool:
    """True when its lease runs but it does not work: a slot is free and nothing is claimed, or
    it never stops starting. A lease whose hash is gone is no ghost (that worker says hello again
    within seconds)."""
    now_ms, limits = at.now_ms, at.limits
    if now_ms < at.hold_until_ms or not worker.known or is_dead(worker, now_ms):
        return False
    if worker.state is WorkerState.STARTING:
        return now_ms - worker.hello_at_ms > limits.start_timeout_s * 1000
    if worker.state is not WorkerState.READY or worker.free == 0:
        return False
    ghost_after_ms = limits.ghost_after_s * 1000
    if now_ms - max(worker.polled_at_ms, worker.freed_at_ms) <= ghost_after_ms:
        return False
    return now_ms - registered_at_ms(worker) > ghost_after_ms


def ghost_evidence(worker: Worker, now_ms: int) -> str:
    """What makes it a ghost, in numbers: ``slot free, no claim for 17.2 s``."""
    if worker.state is WorkerState.STARTING:
        if not worker.hello_at_ms:
            return "starting, never said hello"
        return f"starting for {(now_ms - worker.hello_at_ms) / 1000:.0f} s"
    if not worker.polled_at_ms:
        since_ms = max(worker.freed_at_ms, registered_at_ms(worker))
        if not since_ms:
            return "registered, never polled"
        return f"registered, never polled for {(now_ms - since_ms) / 1000:.1f} s"
    since_ms = max(worker.polled_at_ms, worker.freed_at_ms, registered_at_ms(worker))
    return f"slot free, no claim for {(now_ms - since_ms) / 1000:.1f} s"


def poll_evidence(worker: Worker, now_ms: int) -> str:
    """When it last claimed, whether or not it was given anything."""
    if not worker.polled_at_ms:
        return "never polled"
    return f"last poll {(now_ms - worker.polled_at_ms) / 1000:.1f} s ago"


def is_wedged(worker: Worker, at: Moment) -> bool:
    """True when it does not let go of what was taken from it, or only produces zombies."""
    if worker.zombies >= ZOMBIES_IN_A_ROW:
        return True
    held_ms = at.now_ms - worker.revoked_at_ms
    return bool(worker.revoked) and held_ms > at.limits.wedged_after_s * 1000


def wedged_evidence(worker: Worker, now_ms: int) -> str:
    """What makes it wedged, in numbers."""
    facts = []
    if worker.zombies >= ZOMBIES_IN_A_ROW:
        facts.append(f"its last {worker.zombies} runs made no progress and were taken back")
    if worker.revoked:
        silent_s = (now_ms - worker.revoked_at_ms) / 1000
        runs = counted(len(worker.revoked), "run")
        facts.append(f"{runs} taken back and not let go, the last one {silent_s:.1f} s ago")
    return "; ".join(facts)


def health(worker: Worker, at: Moment) -> Health:
    """The one word for a worker: the first that applies, in the order of ``Health``."""
    if is_dead(worker, at.now_ms):
        return Health.DEAD
    if is_ghost(worker, at):
        return Health.GHOST
    if is_wedged(worker, at):
        return Health.WEDGED
    if worker.state is not WorkerState.READY:
        return Health(worker.state.value)
    if worker.offers and all(o.state is OfferState.QUARANTINED for o in worker.offers):
        return Health.QUARANTINED
    if is_degraded(worker):
        return Health.DEGRADED
    return Health.BUSY if worker.free == 0 else Health.HEALTHY


def is_degraded(worker: Worker) -> bool:
    """True when it serves less than it was set up for: a model that failed, is missing or in
    quarantine, no usable model at all, or a place in the pool ``gpu`` without a GPU."""
    fine = (OfferState.OK, OfferState.PROBING)
    if not worker.offers or any(offer.state not in fine for offer in worker.offers):
        return True
    return (
        worker.pool == "gpu"
        and "cpu_inference" in worker.supports
        and "gpu_inference" not in worker.supports
    )


def registered_at_ms(worker: Worker) -> int:
    """``registered_at`` in ms since 1970, 0 where it is absent or not a time."""
    try:
        at = datetime.fromisoformat(worker.registered_at)
    except ValueError:
        return 0
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
