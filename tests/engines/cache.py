"""Where the engines are kept between runs: ``$XDG_CACHE_HOME/cogrid-tests``."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

DOWNLOAD_S = 300.0


class NotInstalledError(Exception):
    """The engine could not be brought: no network, no compiler, no wheel for this machine."""


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The directory of this name, filled by ``make`` where it is not there yet. It appears whole or
    not at all, also when two runs make it at once. NotInstalledError."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cogrid-tests"
    done = home / name
    if done.is_dir():
        return done
    home.mkdir(parents=True, exist_ok=True)
    begun = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=home))
    try:
        make(begun)
        with contextlib.suppress(OSError):  # another run was quicker
            begun.rename(done)
    except (OSError, StopIteration, subprocess.SubprocessError) as error:
        raise NotInstalledError(f"{name}: {_told(error)}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return done


def pip(*words: str) -> None:
    """pip of this Python; subprocess.SubprocessError."""
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", *words)
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_S)


def _told(error: Exception) -> str:
    """The last line that a program said about it."""
    said = str(getattr(error, "stderr", "") or "").strip()
    return said.splitlines()[-1] if said else str(error)
