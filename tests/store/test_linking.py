"""What a script carries of its parts."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from cogrid.store.linking import linked
from cogrid.store.script import script, script_names

PARTS = """\
local LIMIT = 5
local function one(x) return x + LIMIT end
local function two(x)
  if x then
    return one(x)
  end
end
local function three(x) return x end
local function mend(x)  -- rarely
  return two(three(x))
end
"""


def test_a_function_that_nothing_leads_to_is_left_out() -> None:
    text = linked(PARTS + "return two(1)\n")
    assert "function one" in text
    assert "function two" in text
    assert "function three" not in text
    assert "function mend" not in text
    assert text.startswith("local LIMIT = 5\n")


def test_a_word_in_a_comment_leads_nowhere() -> None:
    assert "function one" not in linked(PARTS + "-- one and two\nreturn LIMIT\n")


def test_what_is_rarely_needed_is_inside_of_what_needs_it() -> None:
    text = linked(PARTS + "return one(1) or mend(1)\n")
    assert text == (
        "local LIMIT = 5\n"
        "local function one(x) return x + LIMIT end\n"
        "local function mend(x)  -- rarely\n"
        "local function two(x)\n"
        "  if x then\n"
        "    return one(x)\n"
        "  end\n"
        "end\n"
        "local function three(x) return x end\n"
        "  return two(three(x))\n"
        "end\n"
        "return one(1) or mend(1)\n"
    )


@pytest.mark.parametrize("name", script_names())
def test_a_script_has_each_function_once_and_uses_it(name: str) -> None:
    source = re.sub("--.*", "", script(name).source)
    made = re.findall(r"^local function (\w+)", source, re.MULTILINE)
    words = Counter(re.findall(r"\w+", source))
    assert len(made) == len(set(made))
    assert [function for function in made if words[function] == 1] == []
