"""The example and the page say what the code says, key by key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cogrid.config import Config, load
from cogrid.config.keys import SECTIONS, known, variable
from cogrid.model.host import Host
from cogrid.rules.domain import LOOK_CHARS, Domain

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "cogrid.example.toml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
DOMAIN_KEYS = [each.name for each in fields(Domain)]
HOST_KEYS = [each.name for each in fields(Host)]


def default(key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(Config(), section), name)


def rows(section: str) -> dict[str, str]:
    """Key -> default, of the section's table in the page."""
    heading = f"## `[[{section}]]`" if section in ("domain", "host") else f"## `[{section}]`"
    body = PAGE.partition(heading)[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (?:`([^|]*)`)? ?\| .+ \|$", body, re.MULTILINE))


def test_the_example_loads_and_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "cogrid.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    config = load(str(file), {})
    for section in SECTIONS:
        assert getattr(config, section) == getattr(Config(), section), section


def test_the_example_has_every_key_once() -> None:
    tables = tomllib.loads(EXAMPLE)
    told = [f"{section}.{name}" for section, table in tables.items() for name in table]
    assert told == list(known())


def uncommented(first: str, end: str) -> str:
    """A part of the example that stands there as a comment."""
    body = EXAMPLE[EXAMPLE.index(first) :].partition(end)[0]
    return re.sub(r"^# ?", "", body, flags=re.MULTILINE)


def test_the_host_in_the_example_works(tmp_path: Path) -> None:
    text = uncommented("# [[host]]", "\n\n")
    file = tmp_path / "cogrid.toml"
    file.write_text(text, encoding="utf-8")
    (host,) = load(str(file), {}).hosts
    assert (host.address, host.id) == ("192.168.0.41", "esxi")
    assert list(tomllib.loads(text)["host"][0]) == HOST_KEYS


def test_the_page_has_every_key_of_a_host() -> None:
    told = {key: tomllib.loads(f"x = {text or '0'}")["x"] for key, text in rows("host").items()}
    assert list(told) == HOST_KEYS
    defaults = {each.name: each.default for each in fields(Host)}
    for key in HOST_KEYS[1:]:
        value = told[key]
        assert (tuple(value) if isinstance(value, list) else value) == defaults[key], key


def test_the_domains_in_the_example_work(tmp_path: Path) -> None:
    text = uncommented("# [[domain]]", "\n# Machines")
    file = tmp_path / "cogrid.toml"
    file.write_text(text, encoding="utf-8")
    names = [rule.name for rule in load(str(file), {}).routing.domains]
    assert names == ["code", "japanese", "pictures", "general"]
    assert {key for table in tomllib.loads(text)["domain"] for key in table} == set(DOMAIN_KEYS)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_every_key_with_its_default(section: str) -> None:
    told = {
        f"{section}.{name}": tomllib.loads(f"x = {text}")["x"]
        for name, text in rows(section).items()
    }
    assert list(told) == [key for key in known() if key.startswith(f"{section}.")]
    for key, value in told.items():
        assert (tuple(value) if isinstance(value, list) else value) == default(key), key
        assert type(value) in (type(default(key)), list), key


def test_the_page_has_every_key_of_a_domain() -> None:
    assert list(rows("domain")) == DOMAIN_KEYS
    assert f"first and last {LOOK_CHARS // 2:,} characters" in PAGE


def test_the_page_tells_the_rule_for_variables() -> None:
    assert f"`limits.lease_s` is `{variable('limits.lease_s')}`" in PAGE


@pytest.mark.parametrize(
    "was", ["`REAPER_DEAD_GRACE_SEC` (15)", "`REAPER_RUNNING_TIMEOUT_SEC`", "a pass every 15 s"]
)
def test_the_page_says_what_became_of_the_old_constants(was: str) -> None:
    assert f"\n| {was}" in PAGE
    limits = rows("limits")
    for key in re.findall(r"`(\w+_s)`", PAGE.partition("\n| was | is |")[2]):
        assert key in limits
