"""A stage on the default server, for verbs that change the grid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reaper.stage import Stage
from tests.servers import Server


@pytest.fixture
def stage(server: Server) -> Iterator[Stage]:
    """A grid whose reaper has been at work for long."""
    made = Stage(server)
    made.settle()
    yield made
    made.close()
