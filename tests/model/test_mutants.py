"""Each rule of the table is needed: without it the model finds an error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.explore import explore
from tests.model.mutants import ENOUGH, MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_rule_left_out_is_noticed(mutant: Mutant) -> None:
    problem = explore(mutant.system()).problem
    assert problem is not None, "survives"
    assert problem.kind == mutant.kind, str(problem)


@pytest.mark.parametrize("mutant", ENOUGH, ids=lambda mutant: mutant.name)
def test_one_of_two_rules_is_enough(mutant: Mutant) -> None:
    problem = explore(mutant.system()).problem
    assert problem is None, str(problem)


def test_every_switch_of_the_model_is_in_the_table() -> None:
    """A switch that no mutant turns would claim a proof that was never made."""
    asked = re.compile(r'lacks\(\s*"(\w+)"|"(\w+)" (?:not )?in self\.mutants')
    sources = [path.read_text() for path in Path(__file__).parent.glob("*.py")]
    switches = {a or b for source in sources for a, b in asked.findall(source)}
    assert switches == {rule for mutant in MUTANTS for rule in mutant.rules}
