"""Models that an operator had this worker pull, kept beside the configuration's own list."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec


class Pulled:
    """A list in the worker's state directory, so that it outlives a restart. path None: nothing is
    kept. A file that cannot be read counts as empty, one that cannot be written is left as it is:
    the worker goes on without either."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.models: tuple[str, ...] = self._read()

    def add(self, model: str) -> None:
        """It was pulled."""
        self._keep((*(name for name in self.models if name != model), model))

    def drop(self, model: str) -> None:
        """It was removed."""
        if model in self.models:
            self._keep(tuple(name for name in self.models if name != model))

    def _read(self) -> tuple[str, ...]:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            if self._path is not None:
                return msgspec.json.decode(self._path.read_bytes(), type=tuple[str, ...])
        return ()

    def _keep(self, models: tuple[str, ...]) -> None:
        self.models = models
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            new.write_bytes(msgspec.json.encode(models) + b"\n")
            os.replace(new, self._path)
