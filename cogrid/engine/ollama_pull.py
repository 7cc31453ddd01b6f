"""The stream of Ollama's /api/pull as progress."""

from __future__ import annotations

from typing import Any

import msgspec

from cogrid.engine.api import EngineError, Fault
from cogrid.engine.error_text import error_text
from cogrid.engine.library import Progress

SUCCESS = "success"


class _Line(msgspec.Struct):
    status: str = ""
    digest: str = ""
    total: int = 0
    completed: int = 0
    error: Any = None


_line = msgspec.json.Decoder(_Line)


class PullLines:
    """Lines in, progress out. Ollama tells of each layer by itself; here they are added up, so that
    a bar that has moved on does not go back. done: it said that it has everything."""

    def __init__(self) -> None:
        self.done = False
        self._layers: dict[str, tuple[int, int]] = {}

    def read(self, raw: bytes) -> Progress:
        """One line. EngineError where it is an error, which comes under the status 200."""
        try:
            line = _line.decode(raw)
        except msgspec.DecodeError as error:
            raise EngineError(Fault.SERVER, f"sent what is no progress: {error}") from error
        if line.error is not None:
            raise EngineError(_fault(line.error), f"failed: {error_text(line.error)}")
        self.done = line.status == SUCCESS
        if line.digest:
            self._layers[line.digest] = (line.completed, line.total)
        completed = sum(part for part, _ in self._layers.values())
        total = sum(whole for _, whole in self._layers.values())
        return Progress(line.status, line.digest, completed, total)


def _fault(error: Any) -> Fault:
    """A model that no registry has is missing, wherever it is asked for."""
    text = error_text(error)
    missing = "does not exist" in text or "not found" in text
    return Fault.MISSING if missing else Fault.SERVER
