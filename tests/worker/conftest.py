"""A grid for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.servers import Server
from tests.worker.grid import Grid, a_grid


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the worker logs, from info on."""
    caplog.set_level("INFO", "cogrid")
    return caplog


@pytest.fixture
async def grid(server: Server, tmp_path: Path, scale: float) -> AsyncIterator[Grid]:
    """The shared server, empty."""
    made = a_grid(server.url, tmp_path, scale)
    yield made
    made.store.close()
