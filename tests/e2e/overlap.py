"""Whole grids spend nearly all of their time waiting; so their tests wait together. At the default
limits all of them; at scaled ones, where there is less to wait for, as many as two cores can bear.

``@at_defaults`` and ``@scaled`` make a test of a scenario. The first such test that is asked starts
the scenarios of all that were selected at those limits, each with a grid of its own; then each test
waits for its own outcome.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SCALE
from tests.e2e.grid import Grid

Scenario = Callable[[Grid], Awaitable[None]]
Test = Callable[["Overlaps"], None]
LIMIT_S = 500.0
AT_ONCE = 4
"""Scaled scenarios. Each starts half a dozen processes, and ten of them would be late with
everything."""


def at_defaults(scenario: Scenario) -> Test:
    """A test of this scenario, which gets a grid at the default limits."""
    return pytest.mark.defaults(_test(scenario, 1.0))


def scaled(scenario: Scenario) -> Test:
    """The same at the limits of the other tests."""
    return _test(scenario, SCALE)


def _test(scenario: Scenario, scale: float) -> Test:
    def test(overlaps: Overlaps) -> None:
        overlaps.at(scale).outcome(scenario)

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    test.scenario = (scale, scenario)  # type: ignore[attr-defined]
    return pytest.mark.e2e(pytest.mark.timeout(LIMIT_S)(test))


class Overlap:
    """Scenarios that run at once, in a thread and a loop of their own."""

    def __init__(self, scenarios: Iterable[Scenario], directory: Path, scale: float) -> None:
        self._scale = scale
        every = tuple(scenarios)
        self._room = asyncio.Semaphore(AT_ONCE if scale < 1 else len(every))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scenarios")
        self._thread.start()
        self._outcomes: dict[Scenario, Future[None]] = {
            scenario: asyncio.run_coroutine_threadsafe(
                self._play(scenario, directory / f"grid-{number}"), self._loop
            )
            for number, scenario in enumerate(every)
        }

    def outcome(self, scenario: Scenario) -> None:
        """Waits for it; raises what it raised."""
        self._outcomes[scenario].result(LIMIT_S)

    def close(self) -> None:
        """Ends those that still run, with their grids."""
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _play(self, scenario: Scenario, directory: Path) -> None:
        async with self._room, Grid(directory, self._scale) as grid:
            await scenario(grid)

    async def _shut(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class Overlaps:
    """The scenarios of all tests that this run will ask, by their limits."""

    def __init__(self, session: pytest.Session, directory: Path) -> None:
        functions: list[Any] = [getattr(item, "function", None) for item in session.items]
        self._selected = [each.scenario for each in functions if hasattr(each, "scenario")]
        self._directory = directory
        self._running: dict[float, Overlap] = {}

    def at(self, scale: float) -> Overlap:
        """Those at this scale, running."""
        if scale not in self._running:
            scenarios = [scenario for at, scenario in self._selected if at == scale]
            self._running[scale] = Overlap(scenarios, self._directory / f"{scale:g}", scale)
        return self._running[scale]

    def close(self) -> None:
        """Ends all of them."""
        for overlap in self._running.values():
            overlap.close()
