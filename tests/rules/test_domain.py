"""Domains: words in every script, patterns, languages, lengths; fast on any prompt."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.rules.domain import LOOK_CHARS, Classified, Domain, Prompt, classify

CODE = Domain(
    "code", words=("python", "C++", "関数", "バグ", "코드"), patterns=(r"\bdef \w{1,40}\(",)
)
JAPANESE = Domain("japanese", languages=("ja",))


def domain_of(text: str, *domains: Domain, **facts: Any) -> Classified:
    return classify(Prompt(text, len(text), **facts), domains)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Write PYTHON, please", "word python"),
        ("Pythonのコードを書いて", "word python"),
        ("Ｐｙｔｈｏｎ で", "word python"),
        ("pythonic", ""),
        ("mypython", ""),
        ("python3", ""),
        ("_python", ""),
        ("c++ or rust", "word C++"),
        ("xC++", ""),
        ("この関数を直して", "word 関数"),
        ("ﾊﾞｸﾞがある", "word バグ"),
        ("ハ\u3099ク\u3099がある", "word バグ"),
        ("이 코드를 고쳐 줘", "word 코드"),
        ("def fib(n): pass", r"pattern \bdef \w{1,40}\("),
        ("DEF FIB(", r"pattern \bdef \w{1,40}\("),
        ("", ""),
    ],
)
def test_words_and_patterns(text: str, reason: str) -> None:
    expected = Classified("code", reason) if reason else Classified("general", "no rule fits")
    assert domain_of(text, CODE) == expected


def test_the_first_rule_that_fits_wins() -> None:
    text = "Pythonのコードを書いて"
    assert domain_of(text, CODE, JAPANESE).domain == "code"
    assert domain_of(text, JAPANESE, CODE) == Classified("japanese", "language ja")


def test_every_kind_of_condition_must_hold() -> None:
    rule = Domain(
        "x", words=("python",), languages=("en",), min_chars=10, max_chars=40, images=True
    )
    text = "please explain this python"
    assert domain_of(text, rule, images=True) == Classified(
        "x", "images, 26 characters, word python, language en"
    )
    assert domain_of(text, rule).domain == "general"
    assert domain_of("python, is it?" * 4, rule, images=True).domain == "general"
    assert domain_of("python", rule, images=True).domain == "general"
    assert domain_of("bitte erkläre das python", rule, images=True).domain == "general"
    assert domain_of("please explain this", rule, images=True).domain == "general"


def test_a_rule_can_ask_for_the_absence_of_tools() -> None:
    plain = Domain("plain", tools=False)
    assert domain_of("hi", plain) == Classified("plain", "no tools")
    assert domain_of("hi", plain, tools=True).domain == "general"


def test_the_length_is_that_of_the_whole_prompt() -> None:
    long = Domain("long", min_chars=1000)
    assert classify(Prompt("sum it up", chars=50_000), (long,)).domain == "long"
    assert classify(Prompt("sum it up", chars=999), (long,)).domain == "general"


def test_a_rule_without_conditions_is_never_matched() -> None:
    general = Domain("general", models=("gemma3:1b",))
    assert not general.conditional
    assert domain_of("hi", general) == Classified("general", "no rule is configured")
    assert domain_of("hi", general, Domain("never"), CODE) == Classified("general", "no rule fits")


def test_both_ends_of_a_long_prompt_are_looked_at() -> None:
    paste = "x " * 50_000
    assert domain_of(f"python {paste}", CODE).domain == "code"
    assert domain_of(f"{paste} python", CODE).domain == "code"
    assert domain_of(f"{paste} python {paste}", CODE).domain == "general"


def test_look_chars_is_what_the_docs_say() -> None:
    assert LOOK_CHARS == 4000
