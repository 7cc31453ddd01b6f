"""What this machine tells about an engine that runs on it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from cogrid.engine import address

AMD, NVIDIA, INTEL = "0x1002", "0x10de", "0x8086"


def has_gpu(root: Path = Path("/"), system: str = "", machine: str = "") -> bool:
    """Whether this machine has a GPU that engines compute on.

    NVIDIA and AMD by their drivers, Intel by the driver of its cards with memory of their own,
    Apple's own chips. A display adapter, be it a virtual machine's, is none.
    """
    if (system or platform.system()) == "Darwin":
        return (machine or platform.machine()) == "arm64"
    return _nvidia(root) or _amd(root) or _card(root)


def _nvidia(root: Path) -> bool:
    """The driver lists its GPUs before anybody has used one; WSL and Jetson have devices only."""
    listed = any((root / "proc/driver/nvidia/gpus").glob("*"))
    return listed or any((root / "dev" / name).exists() for name in ("nvidia0", "nvhost-gpu"))


def _amd(root: Path) -> bool:
    return (root / "dev/kfd").exists()


def _card(root: Path) -> bool:
    return any(_computes(node) for node in (root / "sys/class/drm").glob("renderD*/device"))


def _computes(device: Path) -> bool:
    try:
        vendor = (device / "vendor").read_text().strip()
        return vendor in (AMD, NVIDIA) or (
            vendor == INTEL and os.readlink(device / "driver").endswith("/xe")
        )
    except OSError:
        return False


def ollama_parallel(port: int, proc: Path = Path("/proc")) -> int | None:
    """OLLAMA_NUM_PARALLEL of the Ollama that listens on this port here, None if not known.

    Looked for in this process, then in the server's own environment, which only its user and root
    may read.
    """
    own = _count(os.environ.get("OLLAMA_NUM_PARALLEL", ""))
    if own is not None:
        return own
    for process in proc.glob("[0-9]*"):
        environment = _ollama_environment(process)
        if environment and _listens(environment.get("OLLAMA_HOST", ""), port):
            return _count(environment.get("OLLAMA_NUM_PARALLEL", ""))
    return None


def _ollama_environment(process: Path) -> dict[str, str] | None:
    try:
        if not (process / "comm").read_text().startswith("ollama"):
            return None
        pairs = (process / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _listens(host: str, port: int) -> bool:
    try:
        return address.port(address.ollama_url(host)) == port
    except ValueError:
        return False


def _count(text: str) -> int | None:
    """A number of at least 1; 0 is how Ollama is told to choose for itself."""
    return int(text) if text.isdecimal() and int(text) > 0 else None
