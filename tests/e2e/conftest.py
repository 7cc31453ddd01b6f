"""Fixtures for whole systems."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.e2e.grid import Grid
from tests.e2e.overlap import Overlaps
from tests.servers import VALKEY9


@pytest.fixture(scope="session")
def overlaps(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Overlaps]:
    """The scenarios that were selected; those of the same limits run together."""
    needs(VALKEY9)
    running = Overlaps(request.session, tmp_path_factory.mktemp("grids"))
    yield running
    running.close()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Lets a fixture know how its test went."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture
async def grid(tmp_path: Path, scale: float, request: pytest.FixtureRequest) -> AsyncIterator[Grid]:
    """A grid at the limits of this test, with nothing in it but the server."""
    needs(VALKEY9)
    async with Grid(tmp_path, scale) as one:
        yield one
        if request.node.stash.get(FAILED, True):
            one.rests = False
            print(*(daemon.tail for daemon in one.daemons.values()), sep="\n")
