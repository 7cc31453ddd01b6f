"""Follows the grid's events and says in our own log what happens to workers."""

from __future__ import annotations

import asyncio
import logging

from cogrid.coordinator.registry import Registry
from cogrid.model.limits import Limits
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Health, OfferState, Worker
from cogrid.rules.health import ghost_evidence, health
from cogrid.rules.moment import Moment
from cogrid.store.async_client import AsyncStore
from cogrid.store.events import Event, read_edges, read_last_event
from cogrid.store.outage import Outage
from cogrid.store.refusal import StoreError

log = logging.getLogger(__name__)

TOLD = frozenset({b"registered", b"moved", b"reaped", b"refused", b"forgotten"})


class Watch:
    """Starts at the newest event: what happened before is in the log of whoever was there."""

    def __init__(
        self, store: AsyncStore, registry: Registry, limits: Limits, outage: Outage
    ) -> None:
        self._store = store
        self._registry = registry
        self._limits = limits
        self._outage = outage
        self._last = ""
        self._said: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        registry.changed = self.compare

    async def run(self) -> None:
        """Until cancelled: a look every tick."""
        while True:
            try:
                await self.look()
            except StoreError:
                self._last = ""  # another server may come back, with other ids
            await asyncio.sleep(self._limits.tick_s)

    async def look(self) -> None:
        """Say what is new. StoreError."""
        if not self._last:
            self._last = await self._store.read(read_last_event(self._store.keys))
            return
        more = True
        while more:
            page = await self._store.read(read_edges(self._store.keys, TOLD, self._last))
            self._last, more = page.last, page.more
            if any(event.edge == "registered" for event in page.events):
                await self._registry.refresh()
            for event in page.events:
                self._say(event)

    def compare(self, before: Snapshot, after: Snapshot) -> None:
        """Say which workers have become dead or ghosts, or have come back. Where Redis was not
        well for us, workers may have lived and not been heard: nothing is said until a lease
        later."""
        if self._outage.doubtful(self._limits.lease_s):
            return
        at = Moment.of(after, self._limits)
        here = {}
        for worker in after.workers:
            here[worker.id] = word = _word(worker, at)
            if word != self._said.get(worker.id, ""):
                self._say_health(worker, word, at.now_ms)
        self._said = {name: word for name, word in here.items() if word}

    def _say_health(self, worker: Worker, word: str, now_ms: int) -> None:
        if word == Health.GHOST:
            evidence = ghost_evidence(worker, now_ms)
            log.warning('[ghost] worker_id=%s evidence="%s"', worker.id, evidence)
        elif word == Health.DEAD:
            since_s = (now_ms - (worker.lease_until_ms or now_ms)) / 1000
            log.warning(
                '[lost] worker_id=%s evidence="lease ran out %.1f s ago"', worker.id, since_s
            )
        else:
            log.info("[back] worker_id=%s", worker.id)

    def _say(self, event: Event) -> None:
        if event.edge == "registered":
            self._say_registered(event.worker)
        elif event.edge == "moved":
            reason, _, evidence = event.reason.partition(" ")
            log.info(
                '[moved] task=%s worker_id=%s reason=%s evidence="%s"',
                event.task, event.worker, reason, evidence,
            )  # fmt: skip
        elif event.edge == "reaped":
            log.info(
                "[reaped] task=%s worker_id=%s reason=%s", event.task, event.worker, event.reason
            )
        elif event.edge == "refused":
            self._say_refused(event)
        elif event.edge == "forgotten":
            log.info("[forgotten] worker_id=%s by %s", event.worker, event.reason)

    def _say_refused(self, event: Event) -> None:
        """Once for each process that asks: it goes on asking."""
        if self._refused.get(event.worker) != event.token:
            self._refused[event.worker] = event.token
            log.warning("[refused] worker_id=%s %s", event.worker, event.reason)

    def _say_registered(self, name: str) -> None:
        snapshot = self._registry.snapshot
        worker = snapshot.worker(name) if snapshot else None
        if worker is None:
            log.info("[register] worker_id=%s", name)
            return
        models = [offer.name for offer in worker.offers if offer.state is OfferState.OK]
        supports = list(worker.supports)
        log.info("[register] worker_id=%s models=%s supports=%s", name, models, supports)


def _word(worker: Worker, at: Moment) -> str:
    word = health(worker, at)
    return word if word in (Health.DEAD, Health.GHOST) else ""
