"""Whole grids at the default time limits take minutes, nearly all of it waiting; so they wait
together.

``@at_defaults`` makes a test of a scenario. The first such test that is asked starts the scenarios
of all that were selected, each with a grid of its own; then each test waits for its own outcome.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.grid import Grid

Scenario = Callable[[Grid], Awaitable[None]]
LIMIT_S = 400.0


def at_defaults(scenario: Scenario) -> Callable[[Overlap], None]:
    """A test of this scenario, which gets a grid at the default limits."""

    def test(overlap: Overlap) -> None:
        overlap.outcome(scenario)

    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    test.scenario = scenario  # type: ignore[attr-defined]
    marks = (pytest.mark.e2e, pytest.mark.defaults, pytest.mark.timeout(LIMIT_S))
    for mark in marks:
        test = mark(test)
    return test


class Overlap:
    """Scenarios that run at once, in a thread and a loop of their own."""

    def __init__(self, scenarios: Iterable[Scenario], directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scenarios")
        self._thread.start()
        self._outcomes: dict[Scenario, Future[None]] = {
            scenario: asyncio.run_coroutine_threadsafe(
                _play(scenario, directory / f"grid-{number}"), self._loop
            )
            for number, scenario in enumerate(scenarios)
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

    async def _shut(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()


async def _play(scenario: Scenario, directory: Path) -> None:
    async with Grid(directory) as grid:
        await scenario(grid)


def selected(session: pytest.Session) -> list[Scenario]:
    """The scenarios of all tests that this run will ask."""
    functions: list[Any] = [getattr(item, "function", None) for item in session.items]
    return [each.scenario for each in functions if hasattr(each, "scenario")]
