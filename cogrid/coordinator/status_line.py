"""The line above an answer in Open WebUI: domain, model, worker, queue, and what happens."""

from __future__ import annotations

from cogrid.model.chat import Moved, Reset
from cogrid.model.names import queue_worker

_NAMES_MOST = 3
_NOBODY = "-"
"""Where no worker can take it yet; the parts of the line keep their places."""


class StatusLine:
    """Follows one task. worker: who may take it, or who has it."""

    def __init__(self, domain: str, model: str, queue: str, candidates: tuple[str, ...]) -> None:
        self._domain = domain
        self._model = model
        self._queue = queue
        self._worker = shown(candidates) or queue_worker(queue) or _NOBODY
        self._reason = ""
        self._from = ""

    def waiting(self, place: int) -> str:
        """place: in its queue, 1 is next; 0 where it is not known."""
        where = f", position {place}" if place else ""
        return self._line(f"⏳ waiting{where}")

    def left(self, item: Reset | Moved, candidates: tuple[str, ...]) -> str:
        """A run is over without an end, or the queue has changed. candidates: who may take it now;
        the owner of a worker's own queue is known without."""
        if item.queue:
            self._queue = item.queue
        self._from = self._from or item.worker or "shared"
        owner = queue_worker(self._queue)
        # The reaper may know a moment before us that the worker it was taken from is no home.
        others = tuple(name for name in candidates if name not in (item.worker, self._from))
        self._worker = owner or shown(others) or "another worker"
        self._reason = self._reason or item.reason
        return self._line(f"moved from {self._from} ({self._reason}) to {self._worker}")

    def running(self, worker: str, queue: str) -> str:
        """A worker has it."""
        self._worker = worker
        self._queue = queue or self._queue
        source, reason = self._from, self._reason
        self._from = self._reason = ""
        if source and source != worker:
            return self._line(f"moved from {source} ({reason}) to {worker} · running on {worker}")
        return self._line(f"running on {worker}")

    def _line(self, now: str) -> str:
        return (
            f"domain {self._domain} · model {self._model} · worker {self._worker}"
            f" · queue {self._queue} · {now}"
        )


def shown(workers: tuple[str, ...]) -> str:
    """Names of workers, not more than fit in a line."""
    more = len(workers) - _NAMES_MOST
    return ", ".join(workers[:_NAMES_MOST]) + (f" and {more} more" if more > 0 else "")
