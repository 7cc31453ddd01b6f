"""Every command that a page shows is one that there is, with options that it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mends import assert_is_a_command
from tests.test_layers import ROOT

PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("install", "operations", "http", "durability", "security")),
)
LINE = re.compile(r"^ *(cogrid [^#\n]+)", re.MULTILINE)
SPAN = re.compile(r"`(cogrid\s[^`]+)`")
PART = frozenset(
    {
        *("cogrid up --listen", "cogrid up --listen ADDRESS:PORT", "cogrid explain", "cogrid chat"),
        *("cogrid --version", "cogrid completion --help"),
    }
)
"""Named without what they need, or ended by an option before anything is parsed."""


def shown(page: Path) -> set[str]:
    """The command lines in blocks, and those in running text, which may go over a line's end."""
    text = page.read_text()
    parts = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    parts += re.findall(r"^(?: {4}.*\n)+", text, re.MULTILINE)
    prose = re.sub(r"^```\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = {line.strip() for part in parts for line in LINE.findall(part)}
    return found | {" ".join(span.split()) for span in SPAN.findall(prose)} - PART


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in PAGES for command in sorted(shown(ROOT / page))],
)
def test_it_is_a_command(page: str, command: str) -> None:
    assert_is_a_command(command)


def test_they_are_found() -> None:
    assert {"cogrid up --listen 0.0.0.0", "cogrid spof"} <= shown(ROOT / "README.md")
    assert "cogrid worker resume esxi" in shown(ROOT / "docs" / "operations.md")
