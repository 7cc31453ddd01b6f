"""pip on this side: found where it can be had, and made to fetch or build wheels."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from packaging.requirements import Requirement

from cogrid.errors import CogridError
from cogrid.ops.delivery.python import HostPython, platforms

FETCH_S = 600.0
"""For one run of pip. Ten megabytes at 200 kbit/s take seven minutes."""
_QUIET = ("--quiet", "--no-input", "--disable-pip-version-check")


@dataclass(frozen=True, slots=True)
class Pip:
    """words: how it is called."""

    words: tuple[str, ...]

    def fetch(self, wanted: tuple[Requirement, ...], python: HostPython, into: Path) -> str:
        """Download a wheel of each for that Python, from the index that pip is configured for.
        Returns "" or what pip said: then some are missing."""
        version = ".".join(map(str, python.version))
        places = [word for tag in platforms(python) for word in ("--platform", tag)]
        return self._run(
            "download", *_QUIET, "--no-deps", "--only-binary=:all:", "--implementation=cp",
            "--python-version", version, "--abi", python.abi, *places, "--dest", str(into),
            *map(str, wanted),
        )  # fmt: skip

    def build(self, source: Path, into: Path) -> str:
        """Build the wheel of a source tree; with what is installed here where its build tool is,
        else pip fetches that too. Returns "" or what pip said."""
        at_hand = ("--no-build-isolation",) if find_spec("hatchling") else ()
        return self._run(
            "wheel", *_QUIET, "--no-deps", *at_hand, "--wheel-dir", str(into), str(source)
        )

    def _run(self, *words: str) -> str:
        """LC_ALL: its words are for people, but they shall be the same words everywhere."""
        try:
            done = subprocess.run(
                (*self.words, *words),
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=FETCH_S,
                env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"},
            )
        except OSError as error:
            raise CogridError(f"{self.words[0]} cannot be run: {error.strerror}", CURE) from error
        except subprocess.TimeoutExpired as error:
            raise CogridError(
                f"pip has not fetched the wheels within {FETCH_S:g} s",
                "see whether the package index can be reached: pip download click",
            ) from error
        said = done.stdout.decode(errors="replace").strip()
        return (said or f"pip ended with code {done.returncode}") if done.returncode else ""


CURE = (
    "install pip beside cogrid (python -m ensurepip; uv: uv tool install --with pip cogrid),"
    " or give the wheels: --wheels DIR"
)


def find_pip(env: Mapping[str, str]) -> Pip:
    """The one of our own environment; else the one that Python carries for its environments; else
    any that is on the path: since it resolves nothing, whose it is does not matter."""
    if find_spec("pip"):
        return Pip((sys.executable, "-m", "pip"))
    for wheel in carried():
        return Pip((sys.executable, f"{wheel}/pip"))
    for name in ("pip3", "pip"):
        if path := which(name, path=env.get("PATH")):
            return Pip((path,))
    raise CogridError("there is no pip on this machine to fetch wheels with", CURE)


def carried() -> Iterator[Path]:
    """pip's wheels that this Python came with, for making environments. Debian keeps them apart."""
    if place := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        yield from sorted(Path(place).glob("pip-*.whl"))
    if (spec := find_spec("ensurepip")) and spec.origin:
        yield from sorted((Path(spec.origin).parent / "_bundled").glob("pip-*.whl"))
