"""The pictures of the README: the incident brought about on a real grid, and what the commands show
of it on a terminal of 100 columns. Run from the checkout: ``python -m docs.pictures.make``.

esxi (192.168.0.41 in the incident) has registered and its claim loop never turns; gemma3:1b is on
no other host; one task waits in its own queue. No text is changed: what a command wrote to its
terminal is drawn as it is. Only what differs from run to run by nature (ids, times, addresses of
this machine) does so here too.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cogrid.engine.fault import FaultModel
from tests.e2e.grid import COLUMNS, Grid
from tests.e2e.host import Host
from tests.wait import until_async

HERE = Path(__file__).parent
GEMMA = FaultModel("gemma3:1b", size_bytes=815_319_791)
LLAMA = FaultModel("llama3.2:1b", size_bytes=1_321_098_329)
WAITS_S = 15.0
"""Between the registration and the pictures: longer than a ghost may be silent."""


FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich has it, without the font that it would have a browser fetch from elsewhere."""


@dataclass(frozen=True, slots=True)
class Picture:
    """words: the command. code: its exit code in the incident."""

    name: str
    words: tuple[str, ...]
    code: int


def pictures(task: str) -> Iterator[Picture]:
    """task: the one that waits."""
    yield Picture("status", ("status",), 0)
    yield Picture("diagnose", ("diagnose",), 3)
    yield Picture("spof", ("spof",), 3)
    yield Picture("explain", ("explain", task[:8]), 0)


async def take(grid: Grid, directory: Path) -> tuple[Path, ...]:
    """Bring the incident about on this grid, and write the pictures of it."""
    grid.more |= {"COGRID_REDIS_URL": grid.server.tcp_url}
    task = await _incident(grid)
    taken = [await _picture(grid, each, directory) for each in pictures(task)]
    await grid.cogrid("task", "cancel", task, "--yes")
    grid.daemons["reaper"].resume()
    return tuple(taken)


async def _incident(grid: Grid) -> str:
    await grid.begin()
    hung = grid.directory / "hung"
    hung.touch()
    core = await grid.engine(replace(LLAMA, vram_bytes=LLAMA.size_bytes))
    core.memory.loaded.add(LLAMA.tagged)
    core.shelf.offer(GEMMA)
    grid.worker("ai-core", core, pool="gpu", slots=2, host=Host("ai-core"))
    await grid.up("ai-core")
    esxi = await grid.engine(LLAMA, GEMMA)
    grid.worker("esxi", esxi, host=Host("esxi"), env={"COGRID_TEST_HANG_CLAIMS": str(hung)})
    await grid.up("esxi", "ai-core")
    seen = partial(grid.redis.zscore, "grid:models", GEMMA.name)
    await until_async(seen, WAITS_S, "a pass to see that gemma3:1b has a home")
    grid.daemons["reaper"].pause()
    chat = grid.chat(worker="esxi", headers={"X-Cogrid-On-Close": "keep"})
    await chat.accepted()
    within_s = WAITS_S * grid.scale + WAITS_S
    await until_async(lambda: grid.health("esxi") == "ghost", within_s, "esxi to be a ghost")
    return chat.task


async def _picture(grid: Grid, picture: Picture, directory: Path) -> Path:
    said = await grid.on_terminal(*picture.words)
    assert said.code == picture.code, said.out
    path = directory / f"{picture.name}.svg"
    path.write_text(drawn(f"cogrid {' '.join(picture.words)}", said.out))
    return path


def drawn(command: str, shown: str) -> str:
    """A terminal with a command and what it showed."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(shown.rstrip("\n")))
    return console.export_svg(title="", code_format=FORMAT, unique_id="cogrid")


async def _main() -> None:
    """At the default time limits, on a server that keeps what it has."""
    with tempfile.TemporaryDirectory() as work:
        async with Grid(Path(work), persist=True) as grid:
            for path in await take(grid, HERE):
                print(path)


if __name__ == "__main__":
    asyncio.run(_main())
