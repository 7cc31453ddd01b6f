"""What the README has one type is what there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.e2e.grid import Grid
from tests.e2e.overlap import scaled
from tests.mends import assert_is_a_command
from tests.test_layers import ROOT

README = (ROOT / "README.md").read_text()
OF_ITS_OWN = ("cogrid up", "cogrid install-unit", "cogrid sanity")
"""Run by tests of their own: tests/cli/test_up.py, tests/e2e/test_up.py, tests/hosts."""
CODES = {"cogrid spof": 3, "cogrid doctor": 3}
"""One worker alone is a single point of failure, and the server of the test keeps nothing."""


@dataclass(frozen=True, slots=True)
class Demo:
    """The built-in model instead of an engine."""

    url: str = "demo"


def _typed() -> Iterator[str]:
    """Lines of its blocks, without their comments, and the commands in its sentences."""
    for line in README.splitlines():
        if line.startswith("    ") and not line.startswith("     "):
            yield line.strip().partition("  #")[0].strip()
    yield from (span for span in re.findall(r"`([^`\n]+)`", README) if span.startswith("cogrid "))


LINES = sorted(set(_typed()))
COMMANDS = [line for line in LINES if line.startswith("cogrid ")]


@scaled
async def test_its_commands_run(grid: Grid) -> None:
    """Each with the exit code that it has on a grid with one demonstration worker."""
    grid.patient()
    await grid.begin()
    grid.worker("demo-1", Demo())
    await grid.up("demo-1")
    ran = [line for line in COMMANDS if not line.startswith(OF_ITS_OWN)]
    assert {line.split()[1] for line in ran} >= {"status", "spof", "diagnose", "chat", "doctor"}
    for line in ran:
        said = await grid.cogrid(*shlex.split(line)[1:])
        assert said.code == CODES.get(line, 0), (line, said)
        assert said.out


@pytest.mark.parametrize("line", COMMANDS)
def test_they_are_commands(line: str) -> None:
    assert_is_a_command(line)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make ")])
def test_its_targets_are_in_the_makefile(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_its_files_are_there() -> None:
    named = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "docs/pictures/status.svg" in named
    assert [name for name in named if not (ROOT / name).exists()] == []
