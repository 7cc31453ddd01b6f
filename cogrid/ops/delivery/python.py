"""The Python of a host, as a value, and which wheels fit it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.tags import Tag, compatible_tags, cpython_tags

OLDEST = (3, 11)
"""What cogrid runs on."""
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""Names from before manylinux was numbered by the minor version of glibc 2 (PEP 600)."""
_FIRST = {"x86_64": 5, "i686": 5}
"""The first glibc 2 minor that has wheels; 17 for all other machines."""


@dataclass(frozen=True, slots=True)
class HostPython:
    """An interpreter on a host.

    path: absolute, not inside an environment. version: all three numbers. abi: ``cp311``, or
    ``cp313t`` for one without the lock. machine: what it was built for, which on a 64-bit kernel
    may be a 32-bit one. libc: glibc or musl with its version, or neither. venv: whether it can
    make environments. markers: the environment of PEP 508, by which requirements are chosen.
    """

    path: str
    version: tuple[int, int, int]
    implementation: str
    abi: str
    machine: str
    libc: str
    libc_version: tuple[int, int]
    venv: bool
    markers: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> str:
        """What an operator reads: ``Python 3.11.2 for linux x86_64 with glibc 2.36``."""
        number = ".".join(map(str, self.version))
        name = "Python" if self.implementation == "cpython" else self.implementation
        libc = f" with {self.libc} {'.'.join(map(str, self.libc_version))}" if self.libc else ""
        return f"{name} {number} for linux {self.machine}{libc}"


def platforms(python: HostPython) -> tuple[str, ...]:
    """The platform tags that run there, the closest first (PEP 600, PEP 656)."""
    return tuple(_platforms(python))


def _platforms(python: HostPython) -> Iterator[str]:
    major, minor = python.libc_version
    if (python.libc, major) == ("glibc", 2):
        for older in range(minor, _FIRST.get(python.machine, 17) - 1, -1):
            yield f"manylinux_2_{older}_{python.machine}"
            if older in _LEGACY:
                yield f"{_LEGACY[older]}_{python.machine}"
    if (python.libc, major) == ("musl", 1):
        for older in range(minor, -1, -1):
            yield f"musllinux_1_{older}_{python.machine}"
    yield f"linux_{python.machine}"


def tags(python: HostPython) -> tuple[Tag, ...]:
    """Every tag of a wheel that runs there, the closest first."""
    version, places = python.version[:2], platforms(python)
    interpreter = f"cp{version[0]}{version[1]}"
    return (
        *cpython_tags(version, [python.abi], places),
        *compatible_tags(version, interpreter, places),
    )
