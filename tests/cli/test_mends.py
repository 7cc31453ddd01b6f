"""Every command that a finding prints is one that there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.mends import assert_is_a_command
from tests.test_layers import ROOT


def _commands(path: Path) -> Iterator[str]:
    """Texts of a file that are whole commands, with ``x1`` where something is filled in."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x1" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            text = node.value
        else:
            continue
        if text.startswith("cogrid ") and " shows " not in text:
            if text == "cogrid model pull x1":  # the model with the workers behind it
                text += " --worker x1"
            yield text


MENDS = sorted(
    {text for path in (ROOT / "cogrid" / "rules").glob("*.py") for text in _commands(path)}
)


@pytest.mark.parametrize("mend", MENDS)
def test_it_is_a_command(mend: str) -> None:
    assert_is_a_command(mend)


def test_they_are_found() -> None:
    assert "cogrid reaper --once" in MENDS
    assert "cogrid worker forget x1" in MENDS
    assert len(MENDS) > 6


def test_what_is_no_command_is_told() -> None:
    with pytest.raises(AssertionError, match="there is no heal"):
        assert_is_a_command("cogrid worker heal esxi")
    with pytest.raises(click.NoSuchOption):
        assert_is_a_command("cogrid spof --nothing")
