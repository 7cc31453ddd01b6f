"""Faults for a whole grid, each with the part that it befalls, for a time that the dice give."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cogrid.engine.fault import FaultEngine, Mode
from tests.e2e.daemon import Daemon
from tests.e2e.grid import Grid
from tests.proxy import Proxy

STOP_S = 180.0
"""A worker's drain (120 s) and its last words."""
REFUSING = (Mode.HANG, Mode.SERVER_ERROR, Mode.BUSY)
BREAKING = (Mode.STALL, Mode.CUT, Mode.ERROR_LINE, Mode.UNFINISHED)

Befall = Callable[["Dice"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """part: of one part only one fault stands at a time."""

    name: str
    part: str
    befall: Befall


class Dice:
    """Times by chance, in seconds at the default limits, scaled as the grid is."""

    def __init__(self, seed: int, scale: float) -> None:
        self.chance = random.Random(seed)
        self._scale = scale

    async def lasts(self, *choices_s: float) -> None:
        """One of these times passes."""
        await asyncio.sleep(self.chance.choice(choices_s) * self._scale)

    def pick(self, faults: list[Fault]) -> Fault:
        return self.chance.choice(faults)


def of_daemon(daemon: Daemon) -> list[Fault]:
    """kill -9, SIGTERM, SIGSTOP; a lease is 20 s, so some outlast it."""

    async def kill(dice: Dice) -> None:
        daemon.kill()
        await dice.lasts(0, 5, 30)
        daemon.start()

    async def term(dice: Dice) -> None:
        await daemon.stop(STOP_S)
        daemon.start()

    async def freeze(dice: Dice) -> None:
        daemon.pause()
        await dice.lasts(0.5, 3, 25, 60)
        daemon.resume()

    return [Fault(each.__name__, daemon.name, each) for each in (kill, term, freeze)]


def of_way(proxy: Proxy, name: str) -> list[Fault]:
    """What a network does, one way or both."""

    async def hole(dice: Dice) -> None:
        proxy.black_hole()
        await dice.lasts(1, 5, 25, 45)
        proxy.heal()

    async def cut(dice: Dice) -> None:
        proxy.cut(refuse=dice.chance.random() < 0.5)
        await dice.lasts(0.1, 5, 25)
        proxy.heal()

    async def cut_answers(dice: Dice) -> None:
        proxy.cut_answers_after(dice.chance.choice((0, 50, 500)))
        await dice.lasts(0.5, 5)
        proxy.heal()

    async def cut_requests(dice: Dice) -> None:
        proxy.cut_requests_after(dice.chance.choice((0, 10, 50, 500)))
        await dice.lasts(0.5, 5)
        proxy.heal()

    ways = (hole, cut, cut_answers, cut_requests)
    return [Fault(each.__name__, f"way of {name}", each) for each in ways]


def of_engine(engine: FaultEngine, name: str) -> list[Fault]:
    """Refusals, and answers that break."""

    def with_mode(mode: Mode, after: int) -> Fault:
        async def befall(dice: Dice) -> None:
            engine.set(mode, after=after, times=3)
            await dice.lasts(2, 10)
            engine.switches.clear()
            engine.set(Mode.ECHO)

        return Fault(mode.value, f"engine of {name}", befall)

    return [with_mode(mode, 0) for mode in REFUSING] + [with_mode(mode, 3) for mode in BREAKING]


def of_server(grid: Grid) -> list[Fault]:
    """Restarts, and what a server forgets or refuses."""

    async def restart(dice: Dice) -> None:
        await asyncio.to_thread(grid.server.stop, dice.chance.random() < 0.5)
        await dice.lasts(0, 2, 25)
        await asyncio.to_thread(grid.server.start)

    async def freeze(dice: Dice) -> None:
        grid.server.pause()
        await dice.lasts(1, 5, 25)
        grid.server.resume()

    async def memory(dice: Dice) -> None:
        grid.redis.config_set("maxmemory", 1)
        await dice.lasts(1, 5, 25)
        grid.redis.config_set("maxmemory", 0)

    async def scripts(dice: Dice) -> None:
        grid.redis.script_flush()

    async def connections(dice: Dice) -> None:
        grid.redis.client_kill_filter(_type="normal", skipme=True)

    async def hash_deleted(dice: Dice) -> None:
        workers = grid.redis.zrange("grid:workers", 0, -1)
        if workers:
            grid.redis.delete(f"worker:{dice.chance.choice(workers)}")

    faults = (restart, freeze, memory, scripts, connections, hash_deleted)
    return [Fault(each.__name__, "server", each) for each in faults]
