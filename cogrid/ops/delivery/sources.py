"""Where wheels come from: a directory that the operator gives, or the package index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from packaging.requirements import Requirement

from cogrid.errors import CogridError, UsageError
from cogrid.ops.delivery.cache import Cache
from cogrid.ops.delivery.pip import Pip
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.wheel import best, wheels_in

PIP = Requirement("pip>=23.1")
"""The first that runs under Python 3.12 and later."""


class Source(Protocol):
    """What is taken for a requirement."""

    @property
    def cure(self) -> str:
        """What an operator can do about one that is not to be had."""

    def fetch(self, wanted: tuple[Requirement, ...], python: HostPython) -> None:
        """Get these to hand, as far as they can be had."""

    def find(self, wanted: Requirement, python: HostPython) -> Path | None:
        """The best one that is at hand."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Wheels that lie there; no network is used. UsageError where it is no directory."""

    path: Path
    cure: str = "put them into that directory: pip download cogrid on such a machine makes one"

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise UsageError(f"{self.path} is not a directory", "name one that holds wheels")

    def fetch(self, wanted: tuple[Requirement, ...], python: HostPython) -> None:
        """What is there is there."""

    def find(self, wanted: Requirement, python: HostPython) -> Path | None:
        """The best in the directory."""
        return best(wheels_in(self.path), wanted, python)


@dataclass(frozen=True, slots=True)
class Index:
    """The package index that this machine's pip is configured for, and what came from it before.

    pip: finds it when something is to be fetched. tell: gets a line before that.
    """

    cache: Cache
    pip: Callable[[], Pip]
    tell: Callable[[str], None]
    cure: str = "give those wheels yourself, with the others: --wheels DIR"

    def fetch(self, wanted: tuple[Requirement, ...], python: HostPython) -> None:
        """Into the cache, but what is there. CogridError where the index cannot be reached."""
        absent = tuple(each for each in wanted if self.find(each, python) is None)
        if not absent:
            return
        self.tell(f"fetching {len(absent)} wheels for {python.shown}")
        with self.cache.scratch() as scratch:
            self._fetch(absent, python, scratch)
            self.cache.add(wheels_in(scratch))

    def _fetch(self, absent: tuple[Requirement, ...], python: HostPython, into: Path) -> None:
        """All at once; where that fails each by itself, since pip stops at the first. Before that
        pip itself is asked for: every index has it, so that one timeout tells."""
        pip = self.pip()
        if not pip.fetch(absent, python, into):
            return
        if said := pip.fetch((PIP,), python, into):
            raise CogridError(
                f"pip does not get anything from its package index: {said.splitlines()[-1]}",
                "see `pip download pip` and `pip config list`, or give wheels: --wheels DIR",
            )
        for each in absent:
            pip.fetch((each,), python, into)

    def find(self, wanted: Requirement, python: HostPython) -> Path | None:
        """The best in the cache that is undamaged."""
        while found := best(self.cache.wheels(), wanted, python):
            if self.cache.sound(found):
                return found
        return None
