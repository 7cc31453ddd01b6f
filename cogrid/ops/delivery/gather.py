"""Collects on this side all wheels that a host needs; changes nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache as once
from importlib import metadata
from pathlib import Path
from threading import Lock

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cogrid import __version__
from cogrid.errors import CogridError
from cogrid.ops.delivery.bundle import Bundle
from cogrid.ops.delivery.cache import Cache, cache_dir
from cogrid.ops.delivery.closure import Needs, Release, closure
from cogrid.ops.delivery.own_wheel import own_wheel
from cogrid.ops.delivery.pip import Pip, carried, find_pip
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.sources import PIP, Folder, Index, Source
from cogrid.ops.delivery.wheel import Wheel, best, read_wheel

_ONE_AT_A_TIME = Lock()
"""Hosts are installed side by side and mostly need the same: the second finds it in the cache."""
ROUNDS = 20
"""Each looks for what the one before found to be needed; two are usual."""


class MissingWheelsError(CogridError):
    """Some wheels cannot be had for that Python; nothing was changed on the host."""

    def __init__(self, missing: tuple[str, ...], python: HostPython, cure: str) -> None:
        super().__init__(
            f"no wheel can be had for {python.shown} of: {', '.join(missing)};"
            " nothing was changed on the host",
            cure,
        )
        self.problems = missing


def gather(
    python: HostPython,
    wheels: Path | None,
    env: Mapping[str, str],
    tell: Callable[[str], None] = lambda _line: None,
) -> Bundle:
    """All that cogrid's daemons need under that Python.

    wheels: a directory to take them from, without any network; None: what the package index of this
    machine's pip has, kept in the user's cache. tell: gets a line before what may take long.
    MissingWheelsError names everything that cannot be had. The versions are those that run on
    this side wherever they exist for that Python: so a second call finds the same.
    """
    with _ONE_AT_A_TIME:
        cache = Cache(cache_dir(env))
        pip = once(lambda: find_pip(env))
        source: Source = Folder(wheels) if wheels else Index(cache, pip, tell)
        own = _own(cache, source, python, pip)
        tool = _tool(source, python)
        return Bundle(own.version, python, (own, *resolved(own.release, source, python)), tool)


def _own(cache: Cache, source: Source, python: HostPython, pip: Callable[[], Pip]) -> Wheel:
    """A wheel of our version that the operator gives; else the one of what runs here."""
    if isinstance(source, Folder) and (
        given := source.find(Requirement(f"cogrid=={__version__}"), python)
    ):
        return read_wheel(given)
    with cache.scratch() as scratch:
        return read_wheel(cache.add([own_wheel(scratch, pip)])[0])


def _tool(source: Source, python: HostPython) -> Wheel:
    """pip for the host; the one that our own Python carries where the source has none."""
    source.fetch((PIP,), python)
    found = source.find(PIP, python) or best(carried(), PIP, python)
    if found is None:
        raise MissingWheelsError((str(PIP),), python, source.cure)
    return read_wheel(found)


def resolved(own: Release, source: Source, python: HostPython) -> tuple[Wheel, ...]:
    """A wheel of everything that own needs there, in order of names.

    At first each package is taken to be the release that is installed here. Where that has no
    wheel for the host, another release is looked for, whose requirements count from then on.
    """
    known, taken, missing = installed(), dict[str, Wheel](), dict[str, Requirement]()
    for _ in range(ROUNDS):
        needs = closure(own, known, dict(python.markers))
        wanted = _wanted(needs)
        asked = tuple(
            each
            for name, each in wanted.items()
            if name not in missing and not (name in taken and _meets(taken[name], each))
        )
        if missing and not asked:
            raise MissingWheelsError(tuple(map(str, missing.values())), python, source.cure)
        if not asked:
            return tuple(taken[name] for name in sorted(wanted))
        source.fetch(asked, python)
        for each in asked:
            if found := source.find(each, python):
                taken[each.name] = read_wheel(found)
                known[each.name] = taken[each.name].release
            elif known.pop(each.name, None) is None or each in needs.open:
                missing[each.name] = each
    raise CogridError(
        f"the requirements of cogrid {own.version} contradict each other for {python.shown}",
        source.cure,
    )


def _wanted(needs: Needs) -> dict[str, Requirement]:
    """What is known as exactly that release, by name."""
    pinned = {each.name: Requirement(f"{each.name}=={each.version}") for each in needs.chosen}
    return pinned | {each.name: each for each in needs.open}


def _meets(wheel: Wheel, wanted: Requirement) -> bool:
    return wanted.specifier.contains(wheel.version, prereleases=True)


def installed() -> dict[str, Release]:
    """What is installed beside the cogrid that runs, by normalized name."""
    found: dict[str, Release] = {}
    for each in metadata.distributions():
        name = canonicalize_name(each.metadata["Name"])
        found.setdefault(name, Release(name, each.version, tuple(each.requires or ())))
    return found
