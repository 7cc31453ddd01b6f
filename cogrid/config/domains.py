"""The ``[[domain]]`` tables as rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from cogrid.config.check import name as wrong_name
from cogrid.config.file import Read
from cogrid.config.near import unknown
from cogrid.model.names import normal_model
from cogrid.rules.domain import GENERAL, LOOK_CHARS, Domain
from cogrid.rules.language import LANGUAGES
from cogrid.rules.pattern import MOST_WAYS, compiled, ways

_LISTS = ("words", "patterns", "languages", "models")
_COUNTS = ("min_chars", "max_chars")
_CHOICES = ("images", "tools")


def read_domains(read: Read) -> tuple[tuple[Domain, ...], tuple[str, ...]]:
    """The rules, in order, and everything that is wrong with them."""
    tables = read.tables.get("domain", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), (f"{read.source('domain')}: domain: write each rule as a table [[domain]]",)
    rules: list[Domain] = []
    problems: list[str] = []
    for number, table in enumerate(tables):
        wrong = tuple(_wrong(table, {rule.name for rule in rules}))
        problems += [
            f"{read.source(f'domain#{number}.{key}', f'domain#{number}')}: domain.{key}: {what}"
            for key, what in wrong
        ]
        if not wrong:
            rules.append(_rule(table))
    return tuple(rules), tuple(problems)


def _rule(table: dict[str, Any]) -> Domain:
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in table.items()
    }
    values["models"] = tuple(normal_model(model) for model in values.get("models", ()))
    return Domain(**values)


def _wrong(table: dict[str, Any], names: set[str]) -> Iterable[tuple[str, str]]:
    """Pairs of a key and what is right."""
    keys = [each.name for each in fields(Domain)]
    for key, value in table.items():
        if key not in keys:
            yield key, unknown(key, keys)
        elif what := _type(key, value):
            yield key, what
        else:
            yield from ((key, what) for what in _values(key, value))
    if "name" not in table:
        yield "name", "is missing: every domain has a name"
    elif table["name"] in names:
        yield "name", f"{table['name']!r} is taken by a domain above"
    least, most = table.get("min_chars", 0), table.get("max_chars", 0)
    if not _type("min_chars", least) and not _type("max_chars", most) and 0 < most < least:
        yield "max_chars", "is below min_chars, so nothing would fit"
    if table.get("name") != GENERAL and not any(_set(table, key) for key in keys[1:-1]):
        yield "name", f"has no condition, so it would never fit; only '{GENERAL}' needs none"


def _set(table: dict[str, Any], key: str) -> bool:
    value = table.get(key)
    return value is not None if key in _CHOICES else bool(value)


def _type(key: str, value: object) -> str:
    if key in _LISTS:
        texts = isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)
        return "" if texts else "write a list of texts that are not empty"
    if key in _COUNTS:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if whole else "write a whole number of characters, 0: no limit"
    if key in _CHOICES:
        return "" if isinstance(value, bool) else "write true or false, or leave it out"
    return wrong_name(value)


def _values(key: str, value: Any) -> Iterable[str]:
    if key == "languages":
        for code in value:
            if code not in LANGUAGES:
                yield f"{code!r} is not told apart; these are: {', '.join(sorted(LANGUAGES))}"
    if key == "patterns":
        yield from filter(None, map(_pattern, value))


def _pattern(pattern: str) -> str:
    try:
        many = ways(pattern, LOOK_CHARS)
        compiled(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{pattern!r} is no regular expression: {error}"
    if many > MOST_WAYS:
        return (
            f"{pattern!r} could take minutes on some text: nest no repeats and bound them,"
            " such as .{0,80} for .*"
        )
    return ""
