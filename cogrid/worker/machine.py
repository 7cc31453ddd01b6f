"""What this machine has left: memory, and disk where models are kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

MODELS = (Path("~/.ollama/models"), Path("/usr/share/ollama/.ollama/models"))
"""Where Ollama keeps models: a user's own, and the service's of its Linux package."""


def machine(
    env: Mapping[str, str] | None = None,
    proc: Path = Path("/proc"),
    places: Iterable[Path] = MODELS,
) -> dict[str, int]:
    """Bytes of memory and disk, all and free; what cannot be found out is left out."""
    named = (os.environ if env is None else env).get("OLLAMA_MODELS", "")
    models = (Path(named),) if named else tuple(places)
    return {**_memory(proc / "meminfo"), **_disk(models)}


def _memory(meminfo: Path) -> dict[str, int]:
    """Linux tells what a new program could have without swapping."""
    names = {"MemTotal": "memory_bytes", "MemAvailable": "memory_free_bytes"}
    found = {}
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        name, _, rest = line.partition(":")
        if name in names and rest.split():
            found[names[name]] = int(rest.split()[0]) * 1024
    return found


def _disk(models: Iterable[Path]) -> dict[str, int]:
    """Of the first directory that is there; else of the home directory, where one will be made."""
    for place in (*models, Path("~")):
        try:
            usage = shutil.disk_usage(place.expanduser())
        except (OSError, RuntimeError):  # not there, or no home
            continue
        return {"disk_bytes": usage.total, "disk_free_bytes": usage.free}
    return {}
