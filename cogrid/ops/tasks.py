"""Tasks as an operator sees them: lists with filters, and one with everything about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cogrid.model.names import TaskId, normal_model
from cogrid.model.record import Record, Story
from cogrid.model.task import Band, State, Task
from cogrid.ops.found import the_task
from cogrid.ops.times import age_s, iso
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.gaps import Part
from cogrid.store.stories import read_records, read_story
from cogrid.store.task_lists import Listing, read_body_sizes, read_listed


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list is narrowed to; () and "" narrow nothing. states: none means all that are open.
    user, queue, model, worker: exactly that one."""

    states: tuple[str, ...] = ()
    model: str = ""
    worker: str = ""
    user: str = ""
    queue: str = ""
    most: int = 100

    def fits(self, task: Task) -> bool:
        """True for a task that is to be shown."""
        return (
            task.state in self.wanted
            and self.model in ("", task.model)
            and self.worker in ("", task.worker)
            and self.user in ("", task.user)
            and self.queue in ("", task.queue)
        )

    @property
    def wanted(self) -> frozenset[str]:
        """The states that are asked for."""
        return frozenset(self.states or (state for state in State if not state.terminal))

    @property
    def lists(self) -> tuple[Listing, ...]:
        """The lists in which such tasks stand."""
        found = []
        if any(not State(state).terminal for state in self.wanted):
            found.append(Listing.OPEN)
        if any(State(state).terminal for state in self.wanted - {State.DEAD}):
            found.append(Listing.ENDED)
        if State.DEAD in self.wanted:
            found.append(Listing.DEAD)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task. Ages are seconds: age_s since it was submitted, in_state_s since it is in its
    state. worker: who runs it, or ran it last."""

    id: str
    state: str
    kind: str
    model: str
    user: str
    band: str
    worker: str | None
    queue: str
    age_s: float | None
    in_state_s: float | None
    attempts: int
    recoveries: int
    reason: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class TaskList:
    """total: how many fit the filter, of ``looked_at`` tasks. cut: there are more tasks than were
    looked at, so there may be more that fit."""

    tasks: tuple[TaskRow, ...]
    total: int
    looked_at: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: a task that was given up. kept_until: then it is dropped. body_bytes: of its
    request, which is kept so that it can be tried again; null where that cannot be read."""

    id: str
    model: str
    user: str
    worker: str | None
    attempts: int
    recoveries: int
    error: str | None
    submitted_at: str | None
    died_at: str | None
    kept_until: str | None
    body_bytes: int | None


@dataclass(frozen=True, slots=True)
class Letters:
    """The latest first. total: how many there are."""

    letters: tuple[Letter, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Everything about one task. Instants are ISO 8601 in UTC, null where it has not happened.

    place: in its queue, 1 is next, null in none. due_at: when somebody must look at it again (its
    queue's limit, its back-off, or its progress deadline). wanted_until: its client's lease.
    kept_until: when an ended task is dropped. run: number of the last run, pieces: of text in it.
    """

    id: str
    state: str
    kind: str
    model: str
    domain: str
    why: str | None
    user: str
    key: str | None
    band: str
    needs: tuple[str, ...]
    queue: str
    place: int | None
    worker: str | None
    avoid: str | None
    solo: bool
    attempts: int
    max_attempts: int
    recoveries: int
    max_recoveries: int
    run: int
    pieces: int
    streamed: bool
    followers: int
    on_close: str | None
    body_bytes: int
    submitted_at: str | None
    queued_at: str | None
    claimed_at: str | None
    first_at: str | None
    finished_at: str | None
    due_at: str | None
    wanted_until: str | None
    kept_until: str | None
    reason: str | None
    code: str | None
    error: str | None


def tasks(store: Store, wanted: Filter) -> TaskList:
    """The tasks that fit, the oldest open ones first, of the ended ones the latest first."""
    now_ms = store.read(read_clock())
    rows: list[TaskRow] = []
    looked_at, cut = 0, False
    for which in wanted.lists:
        listed = store.read(read_listed(store.keys, which))
        records = store.read(read_records(store.keys, (task for task, _ in listed.tasks)))
        looked_at += len(listed.tasks)
        cut = cut or listed.cut
        fitting = [r.task for r in records.values() if r and wanted.fits(r.task)]
        if which is Listing.OPEN:
            fitting.sort(key=lambda task: task.submitted_at_ms)
        rows += (_row(task, now_ms) for task in fitting)
    return TaskList(tuple(rows[: wanted.most]), len(rows), looked_at, cut)


def dead_letters(store: Store, model: str = "", most: int = 100) -> Letters:
    """The tasks that were given up, the latest first."""
    listed = store.read(read_listed(store.keys, Listing.DEAD))
    until = dict(listed.tasks)
    records = store.read(read_records(store.keys, until))
    found = [r for r in records.values() if r and normal_model(model) in ("", r.task.model)]
    shown = found[:most]
    sizes = store.read(read_body_sizes(store.keys, tuple(r.task.id for r in shown)))
    sizes = {} if Part.TASKS in store.unread else sizes
    return Letters(tuple(_letter(r, until, sizes) for r in shown), len(found))


def task_facts(store: Store, prefix: str) -> TaskFacts:
    """One task, by the beginning of its id."""
    task = the_task(store, prefix)
    story = store.read(read_story(store.keys, task))
    if story is None:  # it was dropped since it was found
        store.demand((Part.TASKS,))
        return task_facts(store, prefix)
    return facts_of(story)


def facts_of(story: Story) -> TaskFacts:
    """A story as facts."""
    record = story.record
    task = record.task
    return TaskFacts(
        id=task.id,
        state=task.state,
        kind=task.kind,
        model=task.model,
        domain=task.domain,
        why=record.why or None,
        user=task.user,
        key=record.api_key or None,
        band=band_name(task.band),
        needs=task.needs,
        queue=task.queue,
        place=story.place or None,
        worker=task.worker,
        avoid=task.avoid,
        solo=task.solo,
        attempts=task.attempts,
        max_attempts=record.max_attempts,
        recoveries=task.recoveries,
        max_recoveries=record.max_recoveries,
        run=task.run,
        pieces=task.n,
        streamed=task.streamed,
        followers=record.followers,
        on_close=record.on_close or None,
        body_bytes=record.size_bytes,
        submitted_at=iso(task.submitted_at_ms),
        queued_at=iso(task.queued_at_ms),
        claimed_at=iso(task.claimed_at_ms),
        first_at=iso(task.first_at_ms),
        finished_at=iso(task.finished_at_ms),
        due_at=iso(story.due_ms),
        wanted_until=iso(story.wanted_until_ms),
        kept_until=iso(story.kept_until_ms),
        reason=task.reason or None,
        code=record.code or None,
        error=task.error or None,
    )


def band_name(band: Band) -> str:
    """``interactive``, ``background`` or ``batch``."""
    return band.name.lower()


def _row(task: Task, now_ms: int) -> TaskRow:
    return TaskRow(
        id=task.id,
        state=task.state,
        kind=task.kind,
        model=task.model,
        user=task.user,
        band=band_name(task.band),
        worker=task.worker,
        queue=task.queue,
        age_s=age_s(now_ms, task.submitted_at_ms),
        in_state_s=age_s(now_ms, _since_ms(task)),
        attempts=task.attempts,
        recoveries=task.recoveries,
        reason=task.reason or None,
        error=task.error or None,
    )


def _since_ms(task: Task) -> int | None:
    """Since when it is in its state; for a back-off, which has no stamp of its own, since the
    claim of the attempt that failed."""
    if task.state.terminal:
        return task.finished_at_ms
    return task.queued_at_ms if task.state is State.PENDING else task.claimed_at_ms


def _letter(record: Record, until: dict[TaskId, int | None], sizes: dict[TaskId, int]) -> Letter:
    task = record.task
    return Letter(
        id=task.id,
        model=task.model,
        user=task.user,
        worker=task.worker,
        attempts=task.attempts,
        recoveries=task.recoveries,
        error=task.error or None,
        submitted_at=iso(task.submitted_at_ms),
        died_at=iso(task.finished_at_ms),
        kept_until=iso(until.get(task.id)),
        body_bytes=sizes.get(task.id),
    )


def states() -> Iterable[str]:
    """The words that ``--state`` takes."""
    return (state.value for state in State)
