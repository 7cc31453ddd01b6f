"""The pictures of the README are made from a real incident, and tell it."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from docs.pictures.make import HERE, drawn, take
from tests.e2e.grid import MODEL, Grid
from tests.e2e.host import needs_hosts
from tests.e2e.overlap import scaled
from tests.test_layers import ROOT

NAMES = ("status", "diagnose", "spof", "explain")
FACTS = {
    "status": (
        "ai-core healthy gpu", "esxi ghost cpu", "never polled", "Queues that nobody serves",
    ),
    "diagnose": (
        "ghost_pending esxi:", "never polled", "registered_at 20", "holds 0 of 1 slots",
        "mend: cogrid reaper --once", f"mend: cogrid spof --fix --model {MODEL}",
    ),
    "spof": (
        f"no_home {MODEL}:", f"run `ollama pull {MODEL}` on ai-core",
        f"mend: cogrid spof --fix --model {MODEL}", "single_worker llama3.2:1b:",
    ),
    "explain": (
        "it waits in tasks:cpu:esxi, place 1", f"model {MODEL}, domain general",
        "cannot: esxi: ghost: registered, never polled for",
        "cannot: ai-core: does not have the model",
    ),
}  # fmt: skip


@scaled
async def test_the_script_tells_the_incident(grid: Grid) -> None:
    """It is run on a grid of this test; each picture has its facts."""
    needs_hosts()
    grid.patient()
    taken = await take(grid, grid.directory)
    assert [path.name for path in taken] == [f"{name}.svg" for name in NAMES]
    for path in taken:
        _check(path)


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_shows_them(name: str) -> None:
    """The ones that are there tell the same, and fetch nothing from elsewhere."""
    path = HERE / f"{name}.svg"
    _check(path)
    assert f"({path.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    assert "url(http" not in path.read_text()
    assert "/tmp/" not in path.read_text()


def test_what_was_shown_is_drawn_as_it_was() -> None:
    """Blanks, colours and signs that mean something in a picture."""
    shown = drawn("status", "a  <b> & \x1b[31mred\x1b[0m\n" + "x" * 100 + "\n")
    assert _text(shown).splitlines() == ["$ status", "a  <b> & red", "x" * 100]


def _check(path: Path) -> None:
    told = " ".join(_text(path.read_text()).split())
    for fact in (*FACTS[path.stem], "esxi", MODEL):
        assert fact in told, f"{path.name}: {fact}\n{told}"


def _text(svg: str) -> str:
    """Its lines; pieces of one line stand at one height."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(
        r'<text [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', svg, re.DOTALL
    ):
        lines.setdefault(float(y), []).append((float(x), html.unescape(text)))
    joined = ("".join(text for _, text in sorted(pieces)) for _, pieces in sorted(lines.items()))
    return "\n".join(line.replace("\xa0", " ").rstrip() for line in joined).strip("\n")
