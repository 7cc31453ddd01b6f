"""The fault engine and a client for it in either dialect."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cogrid.engine.api import Engine
from cogrid.engine.fault import FaultEngine, FaultModel
from cogrid.engine.find import open_engine
from tests.engine.asking import MODEL

EMBEDDER = FaultModel("bge-m3", ("embedding",))
PLAIN = FaultModel("plain", ("completion",))


@pytest.fixture
async def fault() -> AsyncIterator[FaultEngine]:
    """A fault engine with a chat model, one without tools and thinking, and an embedding model."""
    async with FaultEngine([MODEL, PLAIN, EMBEDDER]) as engine:
        yield engine


@pytest.fixture(params=["ollama", "openai"])
async def engine(request: pytest.FixtureRequest, fault: FaultEngine) -> AsyncIterator[Engine]:
    """The same server by each of its dialects."""
    opened = open_engine(request.param, fault.url)
    yield opened
    await opened.aclose()
