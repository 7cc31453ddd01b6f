"""What was done to each of many tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cogrid.model.record import Record
from cogrid.ops.chosen import Choice, Chosen
from cogrid.rules.counted import counted
from cogrid.store.administration import note
from cogrid.store.client import Store
from cogrid.store.refusal import StoreError
from cogrid.store.script import Call

T = TypeVar("T")
A_TRIP = 25
"""Transitions in one round trip: about 5 ms of the server's time."""


@dataclass(frozen=True, slots=True)
class Deed:
    """One task. state: what it was. done: it was done, or would be. result: what became of it, or
    why not. queue: where it waits now, null where it waits nowhere."""

    id: str
    state: str
    model: str
    user: str
    done: bool
    result: str
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Deeds:
    """verb: the command. by: null in a dry run. fitting: how many tasks were meant; more than
    ``tasks`` where --limit was reached. cut: there may be more that were not looked at."""

    verb: str
    dry_run: bool
    by: str | None
    tasks: tuple[Deed, ...]
    fitting: int
    cut: bool

    @property
    def failed(self) -> int:
        """To how many it was not done."""
        return sum(not task.done for task in self.tasks)


def deed(record: Record, done: bool, result: str, queue: str = "") -> Deed:
    """What was done to this task."""
    task = record.task
    return Deed(task.id, task.state, task.model, task.user, done, result, queue or None)


def planned(verb: str, chosen: Chosen, deeds: Iterable[Deed]) -> Deeds:
    """A dry run."""
    return Deeds(verb, True, None, tuple(deeds), chosen.fitting, chosen.cut)


def finished(verb: str, by: str, chosen: Chosen, deeds: Iterable[Deed]) -> Deeds:
    """What has been done."""
    return Deeds(verb, False, by, tuple(deeds), chosen.fitting, chosen.cut)


def tell(store: Store, verb: str, count: int, choice: Choice, by: str) -> None:
    """Leave the event of a command that changes many tasks, before it does."""
    store.do(note(store.keys, f"{verb}: {counted(count, 'task')} ({choice.said}) by {by}"))


def try_each(store: Store, calls: Sequence[Call[T]]) -> list[T | StoreError]:
    """Each with its outcome or its refusal, some a round trip. A refusal that concerns all of them
    is raised."""
    outcomes: list[T | StoreError] = []
    for at in range(0, len(calls), A_TRIP):
        some = store.try_all(calls[at : at + A_TRIP])
        for outcome in some:
            if isinstance(outcome, StoreError) and outcome.passing:
                raise outcome
        outcomes += some
    return outcomes
