"""Whether a worker on this machine could use Redis: reached, fit, and written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from cogrid.config import Config
from cogrid.errors import UnreachableError
from cogrid.model.names import WorkerId
from cogrid.model.trial import TriedRedis
from cogrid.store.address import Address
from cogrid.store.client import REPLY_S, Store
from cogrid.store.clock import read_clock
from cogrid.store.fitness import read_fitness, require
from cogrid.store.follow import touch_inbox
from cogrid.store.roles import Role

log = logging.getLogger(__name__)

NOBODY = "-"
"""Whose inbox is written to: an id that no worker can have. It goes by itself."""
KEPT_MS = 1_000


async def try_redis(
    config: Config, worker: WorkerId, address: Address, reply_s: float = REPLY_S
) -> TriedRedis:
    """Asks what a worker asks at its start, and writes one key that nobody reads. reply_s: the most
    that an answer is waited for."""
    return await asyncio.to_thread(_try, config, worker, address, min(reply_s, REPLY_S))


def _try(config: Config, worker: WorkerId, address: Address, reply_s: float) -> TriedRedis:
    ahead_s: float | None = None
    with contextlib.closing(Store.connect(address, config.redis.prefix, reply_s)) as store:
        try:
            ahead_s = _ahead_s(store)
            require(store.read(read_fitness(store.keys, (), worker, Role.WORKER)), log.warning)
            store.read(touch_inbox(store.keys, NOBODY, KEPT_MS))
        except UnreachableError as error:
            log.warning("[redis] FAILED: %s", error.message)
            return TriedRedis(address.shown, error.message, error.hint or None, ahead_s)
    log.info("[redis] OK %s", address.shown)
    return TriedRedis(address.shown, ahead_s=ahead_s)


def _ahead_s(store: Store) -> float:
    """This machine's clock before Redis', as if the answer had come from half-way."""
    before_s, began_s = time.time(), time.perf_counter()
    there_s = store.read(read_clock()) / 1000
    return round(before_s + (time.perf_counter() - began_s) / 2 - there_s, 3)
