"""Fixtures of the coordinator's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.coordinator.stage import Stage, stage
from tests.servers import Server


@pytest.fixture
async def grid(server: Server) -> AsyncIterator[Stage]:
    """A coordinator on an empty server, with a worker esxi that has gemma3:1b."""
    async with stage(server.url) as made:
        await made.worker()
        yield made
