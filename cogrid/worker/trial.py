"""A trial: the start up to the end of the probes, and nothing that others would see."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import socket

from cogrid import __version__
from cogrid.config import Config
from cogrid.engine.api import Engine, EngineError
from cogrid.model.names import WorkerId
from cogrid.model.trial import Trial, TriedModel, TriedRedis
from cogrid.store.address import Address
from cogrid.worker.deadlines import Speeds
from cogrid.worker.identity import default_id
from cogrid.worker.machine import machine
from cogrid.worker.offers import Offers
from cogrid.worker.sanity import Sanity
from cogrid.worker.start import Place, find_place
from cogrid.worker.try_redis import try_redis

log = logging.getLogger(__name__)

ENGINE_TICKS = 5
"""For the engine to answer at all, in ticks (seconds, by default): a worker waits for it for ever,
a trial has something to tell."""
WORDS_S = 0.5
"""Left at the end for what was found to be told before the limit."""
REPLY_SHARE = 0.4
"""Of the limit, for each of the two times that a silent server is asked: the thread that asks it
must have ended by then, since Python waits for it."""


async def trial(
    config: Config, limit_s: float, engine: Engine | None = None, address: Address | None = None
) -> Trial:
    """Finds the engine, probes its models, and asks Redis at this address whether a worker could
    use it: no name is taken, nothing is registered or claimed. It ends within limit_s, with what
    it has found until then."""
    worker = WorkerId(config.worker.id) or default_id(socket.gethostname())
    log.info("[start] worker_id=%s version=%s trial for %g s", worker, __version__, limit_s)
    reply_s = REPLY_SHARE * limit_s
    asking = asyncio.create_task(try_redis(config, worker, address, reply_s)) if address else None
    tried = _Tried(config)
    try:
        async with asyncio.timeout(limit_s):
            await tried.go(engine)
            if asking:
                await asyncio.shield(asking)
    except TimeoutError:
        log.warning("[trial] not done within %g s", limit_s)
    redis = await _answer(asking, address) if asking and address else None
    return tried.told(worker, redis)


async def _answer(asking: asyncio.Task[TriedRedis], address: Address) -> TriedRedis:
    """What Redis said, or that it did not within the time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WORDS_S):
            return await asyncio.shield(asking)
    asking.cancel()
    return TriedRedis(address.shown, f"Redis at {address.shown} did not answer in time")


class _Tried:
    """What is known so far."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._offers = Offers(config.limits, config.worker.models)
        self._place: Place | None = None
        self._url = ""
        self._missed: EngineError | None = None

    async def go(self, given: Engine | None) -> None:
        place = await self._find(given)
        if place is None:
            return
        self._place = place
        self._url = place.engine.url
        log.info(
            "[trial] pool=%s slots=%d supports=%s", place.pool, place.slots, list(place.supports)
        )
        try:
            await Sanity(place.engine, self._offers, Speeds(), self._config.limits).once()
        finally:
            await place.engine.aclose()

    async def _find(self, given: Engine | None) -> Place | None:
        limit_s = ENGINE_TICKS * self._config.limits.tick_s
        try:
            async with asyncio.timeout(limit_s):
                return await find_place(self._config, given, lambda: None, self._miss)
        except TimeoutError:
            log.warning("[trial] no engine within %g s", limit_s)
            return None

    def _miss(self, error: EngineError) -> None:
        self._missed = error

    def told(self, worker: str, redis: TriedRedis | None) -> Trial:
        """Says it in the log, and as a value."""
        offers = sorted((offer for offer, _ in self._offers.all()), key=lambda offer: offer.name)
        models = tuple(TriedModel(o.name, o.state, o.reason or None) for o in offers)
        bad = [model for model in models if model.state != "ok"]
        for model in bad:
            log.warning("[trial] %s: %s", model.name, model.state)
        log.info("[trial] %d of %d models are fine", len(models) - len(bad), len(models))
        place, missed = self._place, None if self._place else self._missed
        return Trial(
            worker=worker,
            version=__version__,
            python=platform.python_version(),
            host=socket.gethostname(),
            engine=place.version if place else None,
            engine_url=self._url or None,
            engine_error=missed.message if missed else None,
            engine_hint=missed.hint or None if missed else None,
            pool=place.pool if place else None,
            slots=place.slots if place else None,
            gpu=place.gpu if place else None,
            models=models,
            redis=redis,
            machine=machine(),
        )
