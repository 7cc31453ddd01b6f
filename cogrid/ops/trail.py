"""What became of a worker's tasks since a certain event."""

from __future__ import annotations

from dataclasses import dataclass, field

from cogrid.model.event import Event
from cogrid.model.names import TaskId
from cogrid.model.task import TERMINAL
from cogrid.store.client import Store
from cogrid.store.events import read_events, read_last_event
from cogrid.store.task_hashes import read_tasks

WENT_ON = frozenset({"moved", "reaped", "handed_back", "requeued"})
"""Edges after which a task stands somewhere else."""
ENDED = frozenset(str(state) for state in TERMINAL)
A_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Went:
    """One task that left the worker. how: the event (done, moved, reaped, …). reason: a word and,
    for what was moved, its evidence. state, queue, worker: the task's, now; null where it is gone
    from Redis already."""

    task: str
    how: str
    reason: str | None
    state: str | None
    queue: str | None
    worker: str | None


@dataclass(slots=True)
class Trail:
    """Follows the events of one worker from the moment it is made."""

    store: Store
    worker: str
    after: str = field(init=False)
    _last: dict[str, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.after = self.store.read(read_last_event(self.store.keys))

    def went(self) -> tuple[Went, ...]:
        """Every task that has left since, in that order, and where it is now."""
        while True:
            page = self.store.read(read_events(self.store.keys, self.after, A_PAGE))
            for event in page:
                if event.worker == self.worker and event.edge in WENT_ON | ENDED and event.task:
                    self._last.pop(event.task, None)
                    self._last[event.task] = event
            if page:
                self.after = page[-1].id
            if len(page) < A_PAGE:
                break
        return self._told()

    def _told(self) -> tuple[Went, ...]:
        found = self.store.read(read_tasks(self.store.keys, (TaskId(task) for task in self._last)))
        rows = []
        for event in self._last.values():
            task = found[TaskId(event.task)]
            rows.append(
                Went(
                    event.task,
                    event.edge,
                    event.reason or None,
                    task.state if task else None,
                    task.queue if task else None,
                    task.worker if task else None,
                )
            )
        return tuple(rows)
