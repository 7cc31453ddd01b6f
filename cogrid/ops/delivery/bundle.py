"""What goes to a host: wheels for its Python, under a name that says what is in it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from functools import lru_cache

from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.wheel import Wheel

BYTECODE = 2.0
"""Installed and compiled, an installation takes this many times what its wheels unpack to; measured
1.6, mostly compiled code that is not compiled again."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An installation of cogrid for one Python, not yet anywhere.

    version: cogrid's. wheels: cogrid's own and all that it needs there, by name. pip: only the tool
    that installs them, and not part of what is installed.
    """

    version: str
    python: HostPython
    wheels: tuple[Wheel, ...]
    pip: Wheel

    @property
    def name(self) -> str:
        """``0.1.0-1f0f54a2``: the same for the same content under the same Python."""
        parts = [self.python.path, self.python.abi, *(wheel.sha256 for wheel in self.wheels)]
        return f"{self.version}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]}"

    @property
    def packed_bytes(self) -> int:
        """What is uploaded."""
        return sum(wheel.size_bytes for wheel in (*self.wheels, self.pip))

    @property
    def needed_bytes(self) -> int:
        """Free space that the host must have while it installs."""
        unpacked = sum(wheel.unpacked_bytes for wheel in self.wheels)
        return round(unpacked * BYTECODE) + self.packed_bytes


def archive(bundle: Bundle) -> bytes:
    """All its wheels as one tar."""
    return _tar((bundle.pip, *bundle.wheels))


@lru_cache(maxsize=2)
def _tar(wheels: tuple[Wheel, ...]) -> bytes:
    """Kept, since many hosts of a fleet get the same one at once."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for wheel in wheels:
            entry = tarfile.TarInfo(wheel.path.name)
            entry.size = wheel.size_bytes
            tar.addfile(entry, io.BytesIO(wheel.path.read_bytes()))
    return into.getvalue()
