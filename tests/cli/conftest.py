"""A stage on the default server that commands find through their environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reaper.stage import Stage
from tests.servers import Server


@pytest.fixture
def stage(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A grid whose reaper has been at work for long, at the default time limits."""
    monkeypatch.setenv("COGRID_REDIS_URL", server.url)
    monkeypatch.setenv("COGRID_TIME_SCALE", "1")
    made = Stage(server)
    made.settle()
    yield made
    made.close()
