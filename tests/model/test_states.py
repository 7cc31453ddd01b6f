"""The states of a task: what may follow what, in the code and on its page."""

from __future__ import annotations

import re

from cogrid.model.task import MOVES, TERMINAL, State
from tests.test_layers import ROOT

ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| .+ \|$", re.MULTILINE)


def test_the_page_tells_every_move_once() -> None:
    rows = ROW.findall((ROOT / "docs/design/scripts.md").read_text())
    assert sorted(rows) == sorted((str(a), str(b)) for a, after in MOVES.items() for b in after)


def test_only_a_dead_letter_comes_back() -> None:
    assert set(MOVES) == set(State)
    assert {state for state in TERMINAL if MOVES[state]} == {State.DEAD}
