"""What has happened on the grid, one transition at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One transition, as ``grid:events`` keeps it. at_ms: Redis time. edge: submitted, claimed,
    done, reaped, moved, …; reason: a word or a sentence, as the edge has it."""

    id: str
    edge: str
    task: str
    worker: str
    token: str
    reason: str
    at_ms: int
