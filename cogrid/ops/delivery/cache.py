"""Wheels that were fetched before, on this side: a directory of the user's, filed by content.

Any number of processes may use it at once: a file comes in whole, by a rename, and stays as it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cogrid.errors import CogridError


def cache_dir(env: Mapping[str, str]) -> Path:
    """cogrid's place in the user's cache directory."""
    home = Path(env.get("HOME", "~")).expanduser()
    return Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "cogrid"


@dataclass(frozen=True, slots=True)
class Cache:
    """``<root>/wheels/<sha256>/<name>.whl``."""

    root: Path

    def wheels(self) -> tuple[Path, ...]:
        """All that is in it."""
        return tuple(sorted(self.root.glob("wheels/*/*.whl")))

    def sound(self, wheel: Path) -> bool:
        """Whether the file is still what it was filed as. A damaged one is thrown away."""
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest != wheel.parent.name:
            shutil.rmtree(wheel.parent, ignore_errors=True)
        return digest == wheel.parent.name

    def add(self, wheels: Iterable[Path]) -> tuple[Path, ...]:
        """File copies of these, or find those that are there already."""
        return tuple(self._add(wheel) for wheel in wheels)

    def _add(self, wheel: Path) -> Path:
        content = wheel.read_bytes()
        place = self.root / "wheels" / hashlib.sha256(content).hexdigest()
        if not (place / wheel.name).exists():
            with self.scratch() as scratch:
                (scratch / wheel.name).write_bytes(content)
                place.mkdir(parents=True, exist_ok=True)
                os.replace(scratch / wheel.name, place / wheel.name)
        return place / wheel.name

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory of one's own on the same file system, gone afterwards."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = tempfile.TemporaryDirectory(dir=self.root, prefix="fetching-")
        except OSError as error:
            raise CogridError(
                f"{self.root} cannot be written: {error.strerror}",
                "set XDG_CACHE_HOME to a directory that this user may write",
            ) from error
        with made as scratch:
            yield Path(scratch)
