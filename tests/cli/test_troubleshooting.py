"""Every command of the troubleshooting page is one that there is."""

from __future__ import annotations

import re

import pytest

from cogrid.rules import ghosts, suspects
from tests.mends import assert_is_a_command
from tests.test_layers import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SPANS = re.findall(r"`(cogrid [^`]+)`", PAGE)
LINES = re.findall(r"^(cogrid .+)$", PAGE, re.MULTILINE)
COMMANDS = sorted({*SPANS, *LINES})
NEEDS_AN_ARGUMENT = {"cogrid explain"}


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in NEEDS_AN_ARGUMENT])
def test_it_is_a_command(command: str) -> None:
    assert_is_a_command(command)


def test_they_are_found() -> None:
    assert len(COMMANDS) > 12


def test_every_kind_of_ghost_has_its_line() -> None:
    told = set(re.findall(r"`(\w+)`", PAGE))
    assert {*ghosts.KINDS, ghosts.GONE, *suspects.KINDS} <= told
