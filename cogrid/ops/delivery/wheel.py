"""A wheel file: what it is called, what it holds, and which one of several is taken."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from cogrid.errors import CogridError
from cogrid.ops.delivery.closure import Release
from cogrid.ops.delivery.python import HostPython, tags


@dataclass(frozen=True, slots=True)
class Wheel:
    """name: normalized. sha256: of the file, in hex. unpacked_bytes: of all that is in it."""

    path: Path
    name: str
    version: str
    sha256: str
    size_bytes: int
    unpacked_bytes: int
    requires: tuple[str, ...]

    @property
    def release(self) -> Release:
        """What it is to the requirements."""
        return Release(self.name, self.version, self.requires)


def read_wheel(path: Path) -> Wheel:
    """Look into a wheel. CogridError where it is none."""
    try:
        name, version, *_ = parse_wheel_filename(path.name)
        content = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            requires = message_from_bytes(archive.read(_metadata(archive))).get_all("Requires-Dist")
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except OSError as error:
        raise CogridError(f"{path} cannot be read: {error.strerror}") from error
    except (InvalidWheelFilename, zipfile.BadZipFile, KeyError) as error:
        raise CogridError(
            f"{path} is not a wheel: {error}", "remove it, or fetch it again"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    return Wheel(
        path, name, str(version), digest, len(content), unpacked, tuple(map(str, requires or ()))
    )


def best(paths: Iterable[Path], wanted: Requirement, python: HostPython) -> Path | None:
    """The newest of these that is wanted and runs on that Python; of one version the closest to
    the platform. None where there is none."""
    ranks = {tag: -rank for rank, tag in enumerate(tags(python))}
    fitting = (
        (version, rank, path.name, str(path))
        for path in paths
        if (found := _fits(path, wanted, ranks)) is not None
        for version, rank in [found]
    )
    for *_, path in sorted(fitting, reverse=True):
        if _takes(Path(path), python):
            return Path(path)
    return None


def _fits(path: Path, wanted: Requirement, ranks: dict[Tag, int]) -> tuple[Version, int] | None:
    try:
        name, version, _, its_tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename:
        return None
    fitting = [ranks[tag] for tag in its_tags if tag in ranks]
    early = bool(wanted.specifier.prereleases)  # left to itself, no specifier takes any version
    if name != wanted.name or not fitting or not wanted.specifier.contains(version, early):
        return None
    return version, max(fitting)


def _takes(path: Path, python: HostPython) -> bool:
    """Whether it takes that Python: a name without a number, such as py3, says nothing of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            said = message_from_bytes(archive.read(_metadata(archive))).get("Requires-Python", "")
        return SpecifierSet(said).contains(".".join(map(str, python.version)), prereleases=True)
    except (OSError, zipfile.BadZipFile, KeyError, InvalidSpecifier):
        return False


def _metadata(archive: zipfile.ZipFile) -> str:
    for name in archive.namelist():
        if name.endswith(".dist-info/METADATA") and name.count("/") == 1:
            return name
    raise KeyError("it has no METADATA")


def wheels_in(folder: Path) -> Sequence[Path]:
    """The wheels right in a folder."""
    return sorted(folder.glob("*.whl"))
