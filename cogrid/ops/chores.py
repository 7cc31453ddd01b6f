"""Chores: what an operator asks of single workers, followed until they have done it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from cogrid.errors import ConflictError
from cogrid.model.chat import Claimed, Delta, Dialect, End, Entry, Request, encode_request
from cogrid.model.limits import Limits
from cogrid.model.names import TaskId, WorkerId, normal_model
from cogrid.model.snapshot import Snapshot
from cogrid.model.task import Band, Kind, OnClose, State
from cogrid.model.worker import Health, Worker
from cogrid.ops.found import the_model, the_worker
from cogrid.ops.operator import operator
from cogrid.rules.health import health
from cogrid.rules.homes import capable
from cogrid.rules.moment import Moment
from cogrid.store.administration import note
from cogrid.store.client import Store
from cogrid.store.follow import read_new
from cogrid.store.output import START, entry
from cogrid.store.snapshot import read_snapshot
from cogrid.store.tasks import Submission, cancel, submit

LOOK_S = 0.2
"""Between two looks at the chores that are followed."""
TAKEN_WITHIN_MS = 60_000
"""A ready worker takes a chore within one of its waits (5 s); one that has not by then hangs."""
ABLE = frozenset({Health.HEALTHY, Health.BUSY, Health.DEGRADED, Health.QUARANTINED})
"""Workers in these states are ready and listen."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that one worker is to do with one model."""

    kind: str
    model: str
    worker: str


@dataclass(frozen=True, slots=True)
class Step:
    """Where a chore stands. status: the engine's word for what it does. completed_bytes,
    total_bytes: null where it does not say. state: of its task. message: why it failed."""

    task: str
    kind: str
    model: str
    worker: str
    state: str
    status: str = ""
    completed_bytes: int | None = None
    total_bytes: int | None = None
    message: str | None = None

    @property
    def over(self) -> bool:
        """True when nothing more comes."""
        return State(self.state).terminal

    @property
    def done(self) -> bool:
        """True when it has been done."""
        return self.state == State.DONE


@dataclass(frozen=True, slots=True)
class Chores:
    """wanted: what is to be done, or was. by: null in a dry run. chores: how each ended."""

    dry_run: bool
    by: str | None
    wanted: tuple[Wanted, ...]
    chores: tuple[Step, ...] = ()

    @property
    def failed(self) -> int:
        """How many were not done."""
        return sum(not step.done for step in self.chores)


def plan_pull(
    store: Store, limits: Limits, model: str, workers: Iterable[str]
) -> tuple[Wanted, ...]:
    """The pulls. NotFoundError, ConflictError for a worker that cannot be asked."""
    return _plan(_read(store), limits, Kind.PULL, normal_model(model), workers)


def plan_warm(
    store: Store, limits: Limits, model: str, workers: Iterable[str]
) -> tuple[Wanted, ...]:
    """The same for a model that they have; () means all that have it."""
    snapshot = _read(store)
    name = the_model(snapshot, model)
    having = tuple(worker.id for worker in capable(snapshot, name, limits))
    wanted = _plan(snapshot, limits, Kind.WARM, name, tuple(workers) or having)
    if not wanted:
        raise ConflictError(f"no worker can serve {name}", "cogrid spof says what to do about it")
    return wanted


def plan_remove(
    store: Store, limits: Limits, model: str, workers: Iterable[str], force: bool
) -> tuple[Wanted, ...]:
    """The removals. force: also where nobody else can serve the model then."""
    snapshot = _read(store)
    name = the_model(snapshot, model)
    wanted = _plan(snapshot, limits, Kind.REMOVE, name, workers)
    going = {each.worker for each in wanted}
    for worker in going:
        if the_worker(snapshot, worker).offer(name) is None:
            raise ConflictError(f"{worker} does not have {name}", "cogrid model list shows who has")
    able = {worker.id for worker in capable(snapshot, name, limits)}
    if able and able <= going and not force:
        raise ConflictError(
            f"nobody else can serve {name}: new requests for it would fail",
            "give it to another worker first (cogrid model pull), or add --force",
        )
    return wanted


def begin(store: Store, wanted: Iterable[Wanted]) -> tuple[Step, ...]:
    """Ask for all of it. A worker that has gone meanwhile has its chore failed at once."""
    by, snapshot = operator(), _read(store)
    steps = []
    for each in wanted:
        store.do(note(store.keys, f"model {each.kind}: {each.model} on {each.worker} by {by}"))
        steps.append(_ask(store, each, the_worker(snapshot, each.worker), by))
    return tuple(steps)


def follow(
    store: Store, steps: tuple[Step, ...], sleep: Callable[[float], None] = time.sleep
) -> Iterator[tuple[Step, ...]]:
    """All of them whenever one has got on; the last time, when all are over."""
    read = dict.fromkeys((step.task for step in steps), START)
    yield steps
    while not all(step.over for step in steps):
        open_tasks = tuple((TaskId(s.task), read[s.task]) for s in steps if not s.over)
        new = store.read(read_new(store.keys, open_tasks))
        told = {
            task: [entry(raw) for raw in raws]
            for (task, _), raws in zip(open_tasks, new, strict=True)
        }
        read |= {task: entries[-1].id for task, entries in told.items() if entries}
        now = tuple(_on(step, told.get(TaskId(step.task), ())) for step in steps)
        if now != steps:
            steps = now
            yield steps
        if not all(step.over for step in steps):
            sleep(LOOK_S)


def stop(store: Store, steps: Iterable[Step]) -> None:
    """Cancel what is not over; the workers close their engines' connections."""
    message = f"cancelled by the operator ({operator()})"
    store.do_all([cancel(store.keys, TaskId(s.task), message) for s in steps if not s.over])


def _plan(
    snapshot: Snapshot, limits: Limits, kind: Kind, model: str, workers: Iterable[str]
) -> tuple[Wanted, ...]:
    wanted, at = [], Moment.of(snapshot, limits)
    for name in dict.fromkeys(workers):
        worker = the_worker(snapshot, name)
        now = health(worker, at)
        if now not in ABLE:
            raise ConflictError(
                f"{worker.id} is {now.value}, so it can be asked for nothing",
                f"cogrid worker why-idle {worker.id} says what it wants",
            )
        wanted.append(Wanted(kind.value, model, worker.id))
    return tuple(wanted)


def _ask(store: Store, wanted: Wanted, worker: Worker, by: str) -> Step:
    kind, task = Kind(wanted.kind), TaskId(secrets.token_hex(8))
    chore = Submission(
        id=task,
        kind=kind,
        model=wanted.model,
        queue=worker.queue,
        shared=worker.queue,
        body=encode_request(Request(kind, Dialect.OLLAMA, wanted.model, {"model": wanted.model})),
        user=by,
        band=Band.OPERATOR,
        on_close=OnClose.KEEP,
        why=f"asked for by {by}",
        queue_timeout_ms=TAKEN_WITHIN_MS,
        max_attempts=1,
        max_recoveries=0,
    )
    said = store.do(submit(store.keys, chore))
    step = Step(task, kind.value, wanted.model, WorkerId(wanted.worker), State.PENDING.value)
    if said.status == "new":
        return step
    why = {"not_ready": "is no longer ready"}.get(said.status, f"cannot be asked: {said.status}")
    return replace(step, state=State.FAILED.value, message=f"worker {worker.id} {why}")


def _on(step: Step, entries: Iterable[Entry]) -> Step:
    """The step after these entries of its log."""
    for each in entries:
        match each.item:
            case Claimed():
                step = replace(step, state=State.RUNNING.value)
            case Delta(content=lines):
                step = _progress(step, lines)
            case End(state=state, message=message):
                step = replace(step, state=state.value, message=message or None)
    return step


def _progress(step: Step, lines: str) -> Step:
    for line in lines.splitlines():
        try:
            told = msgspec.json.decode(line, type=dict[str, str | int])
        except msgspec.MsgspecError:
            continue  # of a worker that tells more than this cogrid knows
        step = replace(
            step,
            status=str(told.get("status", "")),
            completed_bytes=_whole(told.get("completed")),
            total_bytes=_whole(told.get("total")),
        )
    return step


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _read(store: Store) -> Snapshot:
    return store.read(read_snapshot(store.keys, info=False))
