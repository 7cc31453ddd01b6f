"""What became of each request, so that tests can ask."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """How a request ended."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    """By a switch, or refused."""
    ABORTED = "aborted"
    """The client closed the connection first."""


@dataclass(slots=True)
class Record:
    """One request to a model. Times are monotonic seconds of this machine; 0: has not happened."""

    number: int
    connection: int
    path: str
    model: str
    started_s: float
    first_s: float = 0.0
    ended_s: float = 0.0
    tokens: int = 0
    outcome: Outcome = Outcome.OPEN
    body: dict[str, object] = field(default_factory=dict)


class Records:
    """All requests to models, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Record] = []
        self.running = 0
        self.peak = 0

    def begin(self, connection: int, path: str, body: dict[str, object]) -> Record:
        """A request was read."""
        model = str(body.get("model", ""))
        record = Record(len(self.all), connection, path, model, time.monotonic(), body=body)
        self.all.append(record)
        self.running += 1
        self.peak = max(self.peak, self.running)
        return record

    def token(self, record: Record) -> None:
        """A piece of its answer is on the way."""
        record.tokens += 1
        record.first_s = record.first_s or time.monotonic()

    def end(self, record: Record, outcome: Outcome) -> None:
        """Nothing more happens to it; only the first end counts."""
        if record.outcome is Outcome.OPEN:
            record.outcome = outcome
            record.ended_s = time.monotonic()
            self.running -= 1

    def count(self, outcome: Outcome) -> int:
        """How many ended so."""
        return sum(record.outcome is outcome for record in self.all)
