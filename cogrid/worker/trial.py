"""A trial: the start up to the end of the probes, and nothing that others would see."""

from __future__ import annotations

import asyncio
import logging
import socket

from cogrid import __version__
from cogrid.config import Config
from cogrid.engine.api import Engine
from cogrid.errors import Exit
from cogrid.model.worker import OfferState
from cogrid.worker.deadlines import Speeds
from cogrid.worker.identity import default_id
from cogrid.worker.offers import Offers
from cogrid.worker.sanity import Sanity
from cogrid.worker.start import find_place

log = logging.getLogger(__name__)


async def trial(config: Config, limit_s: float, engine: Engine | None = None) -> int:
    """Finds the engine and probes its models: no name is taken, Redis is not asked. Exit.OK where
    every model passed, Exit.FINDINGS where one did not, or there is none, or limit_s was too
    short for it."""
    worker = config.worker.id or default_id(socket.gethostname())
    log.info("[start] worker_id=%s version=%s trial for %g s", worker, __version__, limit_s)
    offers = Offers(config.limits, config.worker.models)
    try:
        async with asyncio.timeout(limit_s):
            await _probe(config, offers, engine)
    except TimeoutError:
        log.warning("[trial] not done within %g s", limit_s)
    states = {offer.name: offer.state for offer, _ in offers.all()}
    bad = sorted(name for name, state in states.items() if state is not OfferState.OK)
    for name in bad:
        log.warning("[trial] %s: %s", name, states[name])
    log.info("[trial] %d of %d models are fine", len(states) - len(bad), len(states))
    return Exit.OK if states and not bad else Exit.FINDINGS


async def _probe(config: Config, offers: Offers, given: Engine | None) -> None:
    place = await find_place(config, given, lambda: None)
    log.info("[trial] pool=%s slots=%d supports=%s", place.pool, place.slots, list(place.supports))
    try:
        await Sanity(place.engine, offers, Speeds(), config.limits).once()
    finally:
        await place.engine.aclose()
