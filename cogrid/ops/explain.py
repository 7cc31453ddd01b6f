"""The life of one task: what happened to it, and where it waits, what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cogrid.errors import NotFoundError
from cogrid.model.event import Event
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.record import Story
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Band, State, Task
from cogrid.ops.doubt import fleet_unknown
from cogrid.ops.events import newest_first
from cogrid.ops.found import the_task
from cogrid.ops.tasks import TaskFacts, band_name, facts_of
from cogrid.ops.times import iso
from cogrid.rules.counted import counted
from cogrid.rules.grid import Grid
from cogrid.rules.takers import takers
from cogrid.rules.timeline import SUBMITTED, Moment, timeline
from cogrid.rules.wait import Estimate, estimate
from cogrid.store.client import Store
from cogrid.store.gaps import LISTS, HiddenError, Part
from cogrid.store.reading import Reading
from cogrid.store.snapshot import read_snapshot
from cogrid.store.stories import read_story
from cogrid.store.task_hashes import read_tasks
from cogrid.store.task_lists import read_queued

BEFORE = 1_000
"""Tasks before this one that are looked at."""
MARGIN_MS = 1_000
"""The event's own id may be that much before the stamp: it is the server's other clock."""
NAMED = 10
"""So many of them are named."""


@dataclass(frozen=True, slots=True)
class MomentRow:
    """at: Redis time, UTC. after_s: seconds since the task was submitted. what: a word such as
    submitted, claimed, moved, reaped; told: the rest of the sentence."""

    at: str | None
    after_s: float
    what: str
    told: str
    worker: str | None
    queue: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Tasks of one user in one band."""

    user: str
    band: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TakerRow:
    """takes: this worker may take the task from where it waits. now: it has a slot free for it.
    why: what stands against the one or the other."""

    worker: str
    takes: bool
    now: bool
    why: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Of a task that is pending. place: 1 is next. before: who stands before it, as far as 1,000
    tasks; next_before: the first of them. estimate: seconds until it is claimed at the measured
    rate, with the range in which two of three waits end; null where nothing was measured."""

    place: int
    before: tuple[Standing, ...]
    next_before: tuple[str, ...]
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """task: null where it is gone and only the event log still tells of it. now: one sentence.
    wait: null unless it is pending. takers: every worker, for a task that is not over; null where
    workers cannot be read. complete: the event log reaches back to its beginning."""

    id: str
    now: str
    task: TaskFacts | None
    timeline: tuple[MomentRow, ...]
    wait: Wait | None
    takers: tuple[TakerRow, ...] | None
    complete: bool


def explain(store: Store, prefix: str, limits: Limits) -> Explanation:
    """One task, by the beginning of its id. NotFoundError where neither a task nor an event is
    left of it."""
    try:
        task = the_task(store, prefix)
    except (NotFoundError, HiddenError):
        return _gone(store, prefix)
    story = store.read(read_story(store.keys, task))
    if story is None:  # it was dropped since it was found
        return _gone(store, task)
    events, complete = _history(store, task, story.record.task.submitted_at_ms)
    moments = timeline(events, story.record, story.log)
    snapshot = None if story.record.task.state.terminal else _snapshot(store)
    return Explanation(
        id=task,
        now=_now(story, snapshot, limits),
        task=facts_of(story),
        timeline=_rows(moments),
        wait=_wait(store, story, snapshot) if snapshot and story.place else None,
        takers=_takers(store, story, snapshot, limits) if snapshot else (),
        complete=complete,
    )


def _gone(store: Store, prefix: str) -> Explanation:
    """What the event log still tells of a task that is kept no longer."""
    found: dict[str, list[Event]] = {}
    for event in newest_first(store):
        if event and event.task.startswith(prefix):
            found.setdefault(event.task, []).append(event)
    if len(found) != 1:
        the_task(store, prefix)  # raises what is to be said
        raise NotFoundError(
            f"more than one task in the event log begins with {prefix}", "write more of its id"
        )
    ((task, events),) = found.items()
    moments = timeline(events)
    last = moments[-1]
    hidden = store.unread & {Part.TASKS, *LISTS}
    itself = "cannot be read" if hidden else "is kept no longer"
    return Explanation(
        id=task,
        now=f"{last.what} {last.told}".strip() + "; the task itself " + itself,
        task=None,
        timeline=_rows(moments),
        wait=None,
        takers=(),
        complete=moments[0].what == SUBMITTED,
    )


def _history(store: Store, task: TaskId, submitted_at_ms: int) -> tuple[list[Event], bool]:
    """The task's events, the newest first, back to where it was submitted."""
    found: list[Event] = []
    for event in newest_first(store, submitted_at_ms - MARGIN_MS):
        if event and event.task == task:
            found.append(event)
            if event.edge == SUBMITTED:
                return found, True
    return found, False


def _snapshot(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False))


def _rows(moments: tuple[Moment, ...]) -> tuple[MomentRow, ...]:
    first_ms = moments[0].at_ms if moments else 0
    return tuple(
        MomentRow(
            iso(moment.at_ms),
            round((moment.at_ms - first_ms) / 1000, 3),
            moment.what,
            moment.told,
            moment.worker or None,
            moment.queue or None,
            moment.reason or None,
        )
        for moment in moments
    )


def _now(story: Story, snapshot: Snapshot | None, limits: Limits) -> str:
    task = story.record.task
    now_ms = snapshot.taken_at_ms if snapshot else 0
    if task.state is State.PENDING:
        place = f"place {story.place}, " if story.place else ""
        return f"it waits in {task.queue}, {place}{_since(now_ms, task.queued_at_ms)}"
    if task.state is State.RUNNING:
        return _running(story, now_ms)
    if task.state is State.WAITING:
        due = f", for another {_left(now_ms, story.due_ms)}" if story.due_ms else ""
        return f"attempt {task.attempts} failed on {task.avoid}; it waits before the next{due}"
    error = f": {task.error}" if task.error else ""
    return f"it is {task.state}{error}"


def _running(story: Story, now_ms: int) -> str:
    task = story.record.task
    said = f"{counted(task.n, 'piece')} of text" if task.n else "no text yet"
    deadline = ""
    if story.due_ms:
        late = story.due_ms <= now_ms
        amount_s = abs(story.due_ms - now_ms) / 1000
        deadline = (
            f", progress overdue for {amount_s:.1f} s"
            if late
            else f", progress due within {amount_s:.1f} s"
        )
    return f"it runs on {task.worker} {_since(now_ms, task.claimed_at_ms)}, {said}{deadline}"


def _since(now_ms: int, then_ms: int | None) -> str:
    return f"for {max(0, now_ms - (then_ms or now_ms)) / 1000:.1f} s"


def _left(now_ms: int, until_ms: int) -> str:
    return f"{max(0, until_ms - now_ms) / 1000:.1f} s"


def _wait(store: Store, story: Story, snapshot: Snapshot) -> Wait:
    task = story.record.task
    before = store.read(_read_before(store, task, story.place))
    standing = Counter((each.user, each.band) for each in before)
    return Wait(
        place=story.place,
        before=_standing(standing),
        next_before=tuple(each.id for each in before[:NAMED]),
        estimate=estimate(story.place, snapshot.queue(task.queue)),
    )


def _read_before(store: Store, task: Task, place: int) -> Reading[tuple[Task, ...]]:
    most = min(place, BEFORE + 1)
    queued = yield from read_queued(store.keys, (task.queue,), most)
    ids = [each for each in queued[task.queue] if each != task.id][:BEFORE]
    found = yield from read_tasks(store.keys, ids)
    return tuple(each for each in found.values() if each)


def _standing(standing: Counter[tuple[str, Band]]) -> tuple[Standing, ...]:
    most_first = sorted(standing.items(), key=lambda each: (each[0][1], -each[1], each[0][0]))
    return tuple(Standing(user, band_name(band), tasks) for (user, band), tasks in most_first)


def _takers(
    store: Store, story: Story, snapshot: Snapshot, limits: Limits
) -> tuple[TakerRow, ...] | None:
    if fleet_unknown(store.unread):
        return None
    found = takers(story.record.task, Grid.of(snapshot, limits), limits)
    rows = (TakerRow(t.worker, t.takes, t.now, t.why or None) for t in found)
    return tuple(sorted(rows, key=lambda row: row.worker))


def grouped(rows: Iterable[TakerRow]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Workers that have the same thing against them, together; a large fleet is read by reason."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.why or "", []).append(row.worker)
    return tuple((why, tuple(workers)) for why, workers in found.items())
