"""The start of a worker, before anybody but its engine knows of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from cogrid.config import Config
from cogrid.engine.api import Engine, EngineError
from cogrid.engine.find import find

log = logging.getLogger(__name__)

ENGINE_TICKS = 2
"""Between two looks for the engine, in ticks (seconds, by default)."""


@dataclass(frozen=True, slots=True)
class Place:
    """The engine, and what it says of itself. version: with its kind in front."""

    engine: Engine
    version: str
    gpu: bool
    pool: str
    slots: int

    @property
    def supports(self) -> tuple[str, ...]:
        """What the worker says it supports."""
        return ("gpu_inference" if self.gpu else "cpu_inference",)


async def find_place(
    config: Config,
    engine: Engine | None,
    alive: Callable[[], None],
    missed: Callable[[EngineError], None] = lambda _: None,
) -> Place:
    """The engine, however long it takes to come up; one log line a cause. alive: called at each
    look. missed: called when it is not there. engine: given where it is known."""
    cause = ""
    while True:
        try:
            return await _ask(config, engine)
        except EngineError as error:
            missed(error)
            if error.message != cause:
                cause = error.message
                hint = f" ({error.hint})" if error.hint else ""
                log.warning("[engine] %s%s; tried again until it is there", cause, hint)
        alive()
        await asyncio.sleep(ENGINE_TICKS * config.limits.tick_s)


async def _ask(config: Config, given: Engine | None) -> Place:
    wanted = config.worker
    engine = given or await find(wanted.engine or None, key=wanted.engine_key)
    try:
        version = await engine.version()
        gpu = await engine.gpu()
        slots = wanted.slots or await engine.parallel()
    except BaseException:
        if engine is not given:
            await engine.aclose()
        raise
    log.info("[engine] %s OK %s", f"{engine.kind} {version}".strip(), engine.url)
    pool = wanted.pool or ("gpu" if gpu else "cpu")
    return Place(engine, f"{engine.kind} {version}".strip(), gpu, pool, slots)
