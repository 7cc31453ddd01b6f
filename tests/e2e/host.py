"""Machines of their own for processes of a test: a host name, and if wanted a small disk.

Linux gives a process both in namespaces of its own; nothing outside of it is changed.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import missing

NAMESPACES = ("unshare", "--user", "--map-root-user", "--uts", "--mount")


@dataclass(frozen=True, slots=True)
class Host:
    """disk_bytes: of a disk for models, 0: the one of this machine."""

    name: str
    disk_bytes: int = 0

    def words(self, directory: Path) -> tuple[str, ...]:
        """What stands in front of a command that is to run there; it keeps its process id.
        directory: of the test."""
        steps = [f"hostname {self.name}"]
        if self.disk_bytes:
            models = directory / f"models-{self.name}"
            models.mkdir(exist_ok=True)
            steps.append(f"mount -t tmpfs -o size={self.disk_bytes} models {models}")
            steps.append(f"export OLLAMA_MODELS={models}")
        return (*NAMESPACES, "sh", "-ec", "; ".join((*steps, 'exec "$@"')), "sh")


@cache
def _able() -> bool:
    tried = subprocess.run((*NAMESPACES, "hostname", "esxi"), capture_output=True, check=False)
    return tried.returncode == 0


def needs_hosts() -> None:
    """Goes on only where processes can have a host name of their own."""
    if not _able():
        missing("unshare with user namespaces", "a kernel that allows them, or root")
