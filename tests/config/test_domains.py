"""``[[domain]]`` tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogrid.config import ConfigError, load
from cogrid.rules.domain import Domain


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cogrid.toml"


def test_rules_in_their_order(file: Path) -> None:
    file.write_text(
        """
[[domain]]
name = "code"
words = ["python", "関数"]
patterns = ['\\bdef \\w{1,40}\\(']
languages = ["ja", "en"]
min_chars = 1
max_chars = 9
images = false
tools = true
models = ["qwen:latest", "gemma3:1b"]

[[domain]]
name = "general"
models = ["llama3.2:1b"]
"""
    )
    assert load(str(file), {}).routing.domains == (
        Domain(
            "code",
            words=("python", "関数"),
            patterns=(r"\bdef \w{1,40}\(",),
            languages=("ja", "en"),
            min_chars=1,
            max_chars=9,
            images=False,
            tools=True,
            models=("qwen", "gemma3:1b"),
        ),
        Domain("general", models=("llama3.2:1b",)),
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('words = ["a"]', "domain.name: is missing: every domain has a name"),
        ('name = "Big One"\nwords = ["a"]', "domain.name: write a name"),
        ('name = "x"\nmodels = ["m"]', "domain.name: has no condition, so it would never fit"),
        ('name = "x"\nword = ["a"]\nimages = true', "domain.word: is unknown; did you mean words?"),
        ('name = "x"\nwords = "a"', "domain.words: write a list of texts that are not empty"),
        ('name = "x"\nwords = [" "]', "domain.words: write a list of texts that are not empty"),
        ('name = "x"\nmin_chars = -1\nimages = true', "domain.min_chars: write a whole number"),
        ('name = "x"\nimages = "no"', "domain.images: write true or false, or leave it out"),
        ('name = "x"\nmin_chars = 9\nmax_chars = 8', "domain.max_chars: is below min_chars"),
        (
            'name = "x"\nlanguages = ["jp"]',
            "domain.languages: 'jp' is not told apart; these",
        ),
        (
            'name = "x"\npatterns = ["("]',
            "domain.patterns: '(' is no regular expression",
        ),
        ('name = "x"\npatterns = ["(a+)+$"]', "domain.patterns: '(a+)+$' could take minutes"),
    ],
)
def test_what_is_wrong_with_a_rule(file: Path, lines: str, says: str) -> None:
    file.write_text(f"[[domain]]\n{lines}\n")
    with pytest.raises(ConfigError) as caught:
        load(str(file), {})
    assert len(caught.value.problems) == 1, caught.value.problems
    assert says in caught.value.problems[0]


def test_a_name_is_taken_once_and_the_line_is_told(file: Path) -> None:
    file.write_text(
        '[[domain]]\nname = "x"\nimages = true\n\n[[domain]]\nimages = true\nname = "x"\n'
    )
    with pytest.raises(ConfigError) as caught:
        load(str(file), {})
    assert caught.value.problems == (f"{file}:7: domain.name: 'x' is taken by a domain above",)
