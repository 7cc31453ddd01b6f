"""The tasks that an operator means: by id, or by what they have in common."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.errors import UsageError
from cogrid.model.names import TaskId
from cogrid.model.record import Record
from cogrid.model.task import State, Task
from cogrid.ops.found import the_task
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.stories import read_records
from cogrid.store.task_lists import Listing, read_listed

MOST = 1_000
"""Tasks that one command touches unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Choice:
    """ids: beginnings of ids; the rest narrows, "" and None narrow nothing. older_than_s: since it
    was submitted, or since its end. all: without it, something must be named."""

    ids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    model: str = ""
    user: str = ""
    queue: str = ""
    worker: str = ""
    older_than_s: float | None = None
    all: bool = False
    most: int = MOST

    @property
    def said(self) -> str:
        """The choice in words, for the event."""
        named = {
            "state": ", ".join(self.states),
            "model": self.model,
            "user": self.user,
            "queue": self.queue,
            "worker": self.worker,
            "older than": f"{self.older_than_s:g} s" if self.older_than_s is not None else "",
        }
        parts = [*self.ids[:10], *(f"{name} {what}" for name, what in named.items() if what)]
        return ", ".join(parts) or "all"

    def fits(self, task: Task, now_ms: int) -> bool:
        """True for a task with all that is asked for."""
        since_ms = task.finished_at_ms if task.state.terminal else task.submitted_at_ms
        old = self.older_than_s is None or now_ms - (since_ms or 0) >= self.older_than_s * 1000
        return (
            old
            and (not self.states or task.state in self.states)
            and self.model in ("", task.model)
            and self.user in ("", task.user)
            and self.queue in ("", task.queue)
            and self.worker in ("", task.worker)
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """records: at most as many as were asked for, the oldest first. fitting: how many there are.
    cut: there may be more, which were not looked at."""

    records: tuple[Record, ...]
    fitting: int
    cut: bool = False


def choose(store: Store, choice: Choice, which: tuple[Listing, ...]) -> Chosen:
    """The tasks, of these lists. UsageError where nothing narrows and ``all`` was not said."""
    if choice.ids:
        ids = tuple(dict.fromkeys(the_task(store, prefix) for prefix in choice.ids))
        return _fitting(store, choice, ids, cut=False)
    if not choice.all and choice == Choice(most=choice.most):
        raise UsageError("no task is named", "name tasks by id, narrow with an option, or --all")
    listed = [store.read(read_listed(store.keys, each)) for each in which]
    ids = tuple(task for each in listed for task, _ in each.tasks)
    return _fitting(store, choice, ids, any(each.cut for each in listed))


def _fitting(store: Store, choice: Choice, ids: tuple[TaskId, ...], cut: bool) -> Chosen:
    now_ms = store.read(read_clock())
    found = store.read(read_records(store.keys, ids)).values()
    fitting = sorted(
        (record for record in found if record and choice.fits(record.task, now_ms)),
        key=lambda record: record.task.submitted_at_ms,
    )
    return Chosen(tuple(fitting[: choice.most]), len(fitting), cut)


OPEN = tuple(state.value for state in State if not state.terminal)
ENDED = tuple(state.value for state in State if state.terminal and state is not State.DEAD)
