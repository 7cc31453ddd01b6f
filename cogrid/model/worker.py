"""A worker: one process beside one engine, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cogrid.model.names import Queue, TaskId, Token, WorkerId, own_queue, shared_queue


class WorkerState(StrEnum):
    """What the worker says it does."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    AWAY = "away"


class OfferState(StrEnum):
    """How one model fares on one worker."""

    PROBING = "probing"
    OK = "ok"
    FAILED = "failed"
    MISSING = "missing"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Offer:
    """One model on one worker, as its renew reports it (JSON in the hash field ``models``).

    supports: any of chat, embed, vision, tools, thinking. since_ms: Redis time at which the
    state began, 0 if unknown. reason: why it failed or is quarantined. size_bytes, vram_bytes: 0
    if unknown.
    """

    name: str
    state: OfferState = OfferState.OK
    loaded: bool = False
    supports: tuple[str, ...] = ("chat",)
    digest: str = ""
    size_bytes: int = 0
    vram_bytes: int = 0
    context: int = 0
    since_ms: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator asked of a worker (hash field ``wanted``, JSON)."""

    state: str = "run"
    until_ms: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Worker:
    """The hash ``worker:<id>`` with its lease and what it holds.

    lease_until_ms: score in ``grid:workers``, None where there is no lease at all (a hash left
    over). known: the hash exists. Stamps are Redis time in ms; 0 means never. tasks: what it
    runs. chores: what the operator asked of it, beside its slots. revoked: tokens taken from it and
    not yet confirmed; each still occupies a slot. taken: how many both are, where they were only
    counted. claim_age_ms: how long ago its claim loop had
    turned when it last renewed. report: further facts that it tells, by name. address: the IP
    address from which its machine reaches Redis, "" where it told none.
    """

    id: WorkerId
    known: bool
    lease_until_ms: int | None
    instance: str = ""
    lock_id: str = ""
    host: str = ""
    pool: str = ""
    slots: int = 0
    version: str = ""
    engine: str = ""
    supports: tuple[str, ...] = ()
    state: WorkerState = WorkerState.STARTING
    registered_at: str = ""
    hello_at_ms: int = 0
    beat_at_ms: int = 0
    polled_at_ms: int = 0
    freed_at_ms: int = 0
    revoked_at_ms: int = 0
    zombies: int = 0
    offers: tuple[Offer, ...] = ()
    tasks: tuple[TaskId, ...] = ()
    revoked: tuple[Token, ...] = ()
    wish: Wish = Wish()
    taken: int = 0
    claim_age_ms: int = 0
    report: dict[str, Any] = field(default_factory=dict, hash=False)
    chores: tuple[TaskId, ...] = ()
    address: str = ""

    @property
    def pulls(self) -> bool:
        """True beside Ollama, the engine that fetches a model by itself when it is asked to."""
        return self.engine.startswith("ollama")

    @property
    def demo(self) -> bool:
        """True with the built-in demonstration instead of an engine: it gets no further model."""
        return self.engine.startswith("demo")

    @property
    def busy(self) -> int:
        """Slots that are taken, by runs or by tokens not yet confirmed."""
        return max(self.taken, len(self.tasks) + len(self.revoked))

    @property
    def free(self) -> int:
        """Slots that a claim could fill; never below 0."""
        return max(0, self.slots - self.busy)

    @property
    def queue(self) -> Queue:
        """The queue that only this worker takes from."""
        return own_queue(self.pool, self.id)

    def offer(self, model: str) -> Offer | None:
        """What it says of one model."""
        return next((offer for offer in self.offers if offer.name == model), None)

    def shared(self, model: str) -> Queue:
        """The queue of this model in its pool."""
        return shared_queue(self.pool, model)


class Health(StrEnum):
    """One word for a worker; the first that applies, in this order, is the one."""

    DEAD = "dead"
    GHOST = "ghost"
    WEDGED = "wedged"
    STARTING = "starting"
    DRAINING = "draining"
    AWAY = "away"
    QUARANTINED = "quarantined"
    DEGRADED = "degraded"
    BUSY = "busy"
    HEALTHY = "healthy"
