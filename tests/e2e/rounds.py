"""How often something is killed: in every run, and when it is to be proved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.conftest import needs
from tests.e2e.grid import Grid
from tests.servers import VALKEY9

ROUNDS = 20
PROOF_ROUNDS, PROOF_GRIDS = 200, 8
PROOF_LIMIT_S = 3600.0


async def in_many_grids(
    directory: Path, kill: Callable[[Grid, int], Awaitable[None]], grids: int = PROOF_GRIDS
) -> None:
    """All rounds of the proof at the default limits, spread over grids that run side by side."""
    needs(VALKEY9)

    async def one(number: int) -> None:
        async with Grid(directory / f"grid-{number}") as grid:
            await kill(grid, PROOF_ROUNDS // grids)

    await asyncio.gather(*(one(number) for number in range(grids)))
