"""docs/commands.md is made from the commands."""

from __future__ import annotations

import re

import click
import pytest

from cogrid.cli.documents import ATTRIBUTE
from cogrid.cli.reference import EXITS, commands, reference
from cogrid.errors import Exit
from tests.test_layers import ROOT

PAGE = ROOT / "docs" / "commands.md"
EVERY = [(" ".join(words), command) for words, command in commands()]


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), (
        "make it anew: python -m cogrid.cli.reference > docs/commands.md"
    )


@pytest.mark.parametrize(("words", "command"), EVERY, ids=[words for words, _ in EVERY])
def test_every_command_has_an_example_and_says_what_its_json_is(
    words: str, command: click.Command
) -> None:
    help_text = command.help or ""
    assert re.search(rf"^ *cogrid {re.escape(words)}\b", help_text, re.MULTILINE), "no example"
    takes_json = any(option.name == "as_json" for option in command.params)
    told = getattr(command.callback, ATTRIBUTE, ())
    assert bool(told) == takes_json


def test_every_exit_code_has_its_conditions() -> None:
    told = {code for _, code in EXITS}
    assert {int(code) for code in Exit} <= told
