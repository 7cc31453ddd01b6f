"""Where a task ran: the ``cogrid`` object of every answer, and the headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cogrid.coordinator.accepting import Accepted
from cogrid.coordinator.exchange import Header
from cogrid.model.chat import Claimed, End, Item, Moved, Reset
from cogrid.model.task import Reason

_RECOVERIES = frozenset({Reason.DEAD_WORKER, Reason.ZOMBIE_RUNNING, Reason.RESTARTED})
"""Why a run was taken back by the reaper; other ends of a run are no recoveries."""


@dataclass(slots=True)
class Ran:
    """Follows a task's log. worker: who has it or had it last, "" before anybody has."""

    accepted: Accepted
    queue: str
    worker: str = ""
    recoveries: int = 0

    @classmethod
    def of(cls, accepted: Accepted) -> Ran:
        """A task that was just accepted."""
        return cls(accepted, accepted.queue)

    def take(self, item: Item) -> None:
        """One more entry."""
        if type(item) is Claimed:
            self.worker, self.queue = item.worker, item.queue or self.queue
        elif type(item) is End:
            self.worker = item.worker or self.worker
        elif type(item) is Moved or type(item) is Reset:
            self.queue = item.queue or self.queue
            if type(item) is Reset and item.reason in _RECOVERIES:
                self.recoveries += 1

    def facts(self) -> dict[str, Any]:
        """The object that the last chunk carries; a missing worker is null."""
        return {
            "task": self.accepted.task,
            "worker": self.worker or None,
            "domain": self.accepted.domain,
            "model": self.accepted.model,
            "queue": self.queue,
            "recoveries": self.recoveries,
        }

    def headers(self) -> list[Header]:
        """What is known when the status goes out."""
        accepted = self.accepted
        headers = [
            (b"x-cogrid-task", accepted.task.encode()),
            (b"x-cogrid-domain", _value(accepted.domain)),
            (b"x-cogrid-model", _value(accepted.model)),
            (b"x-cogrid-queue", _value(self.queue)),
        ]
        if self.worker:
            headers.append((b"x-cogrid-worker", _value(self.worker)))
        return headers


def _value(text: str) -> bytes:
    """A header's value; what is not ASCII is percent-encoded."""
    return quote(text, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~\"\\").encode()
