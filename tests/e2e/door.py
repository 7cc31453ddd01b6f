"""A grid with one worker, for what is sent to its door."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cogrid.engine.fault import FaultEngine
from tests.conftest import SCALE, needs
from tests.e2e.grid import Grid
from tests.servers import VALKEY9

AT_ONCE_S = 10.0
"""Within this, on the slowest machine; a refusal takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Door:
    """The grid, and the engine behind it."""

    grid: Grid
    engine: FaultEngine

    async def refuses(self, path: str, body: Any, what: object = "") -> str:
        """The sentence that a request gets; anything but a proper refusal is an error."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await self.grid.http.post(path, content=content, timeout=AT_ONCE_S)
        assert 400 <= answer.status_code < 500, (path, what or body, answer.text[:500])
        return sentence(path, answer)


@contextlib.asynccontextmanager
async def open_door(directory: Path) -> AsyncIterator[Door]:
    """A coordinator that may not fail in itself, whatever it is sent, and esxi."""
    needs(VALKEY9)
    async with Grid(directory, SCALE) as grid:
        coordinator = grid.coordinator()
        grid.reaper()
        engine = await grid.engine()
        grid.worker("esxi", engine, slots=4)
        await grid.up("esxi")
        yield Door(grid, engine)
        for daemon in grid.daemons.values():
            assert "Traceback" not in daemon.log, daemon.tail
        assert "failed in cogrid itself" not in coordinator.log


def sentence(path: str, answer: httpx.Response) -> str:
    """The error's text, in the form of the path's dialect: one sentence for people."""
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    if path.startswith("/api/"):
        assert list(answer.json()) == ["error"]
    else:
        assert set(error) == {"message", "type", "param", "code"}
        assert error["type"] == "invalid_request_error"
        error = error["message"]
    assert isinstance(error, str)
    assert error.isprintable()
    assert " " in error
    assert len(error) < 600
    return error
