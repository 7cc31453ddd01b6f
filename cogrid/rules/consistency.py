"""Whether what stands in the lists of the grid agrees with what the tasks say of themselves.

A task that is not over stands once in ``grid:due`` and in exactly one of: a queue (pending), one
worker's set (running), neither (waiting). What a stopped script has left behind is found here:
a pass over everything (``cogrid reaper --once``) drops what no task confirms; a task that
contradicts itself can only be ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from cogrid.model.finding import Finding
from cogrid.model.inventory import Inventory
from cogrid.model.names import TaskId, token_instance
from cogrid.model.record import Record
from cogrid.model.task import State
from cogrid.rules.counted import counted
from cogrid.rules.mend import REAP, cancel, purge

_END = "end"


def inconsistencies(found: Inventory) -> tuple[Finding, ...]:
    """Everything that does not agree, each with the command that mends it or tells more."""
    return tuple(
        sorted(
            (finding for check in CHECKS for finding in check(found)),
            key=lambda each: (each.kind, each.subject),
        )
    )


def in_both(first: tuple[Finding, ...], second: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What looks wrong in the same way in two inventories; the rest was the grid moving on."""
    again = {(each.kind, each.subject, each.evidence) for each in second}
    return tuple(each for each in first if (each.kind, each.subject, each.evidence) in again)


def open_tasks_stand_in_one_place(found: Inventory) -> Iterator[Finding]:
    places = _places(found)
    for task, record in _known(found):
        state = record.task.state
        expected = {
            State.PENDING: [str(record.task.queue)],
            State.RUNNING: [f"worker {record.task.worker}"],
        }.get(state, [])
        if places[task] != expected:
            where = f"in {_and(places[task])}" if places[task] else "nowhere"
            told = f"it is {state} and stands {where}"
            too_many = set(expected) <= set(places[task])
            yield _task(task, "misplaced", told, record, REAP if too_many else cancel(task))


def open_tasks_are_due(found: Inventory) -> Iterator[Finding]:
    if found.cut:
        return
    for task, record in _known(found):
        if not record.task.state.terminal and task not in found.open:
            told = f"it is {record.task.state} and nobody will look at it: it is not in grid:due"
            yield _task(task, "not_due", told, record)


def lists_name_tasks_that_are(found: Inventory) -> Iterator[Finding]:
    places = _places(found)
    for task, record in found.records.items():
        over = record is not None and record.task.state.terminal
        lists = [*places[task], *(["grid:due"] if task in found.open else [])]
        lists += ["grid:clients"] if task in found.clients else []
        if record is None and lists:
            told = f"there is no such task, and it stands in {_and(lists)}"
            yield _task(task, "no_task", told, mend=REAP)
        elif record and over and task in found.open | found.clients:
            told = f"it is {record.task.state} and stands in {_and(lists)}"
            yield _task(task, "over_and_listed", told, record, REAP)


def clients_are_of_tasks_that_have_one(found: Inventory) -> Iterator[Finding]:
    if found.cut:
        return
    for task, record in _known(found):
        if record.task.state.terminal or record.client == (task in found.clients):
            continue
        told = (
            "it lives only while a client wants it, and has no client's lease"
            if record.client
            else "it is to run without a client, and has a client's lease"
        )
        yield _task(task, "client_lease", told, record)


def only_running_tasks_have_tokens(found: Inventory) -> Iterator[Finding]:
    holders: defaultdict[str, list[TaskId]] = defaultdict(list)
    for task, record in _known(found):
        token = record.task.token
        if token:
            holders[token].append(task)
        if bool(token) != (record.task.state is State.RUNNING):
            has = f"has the token {token}" if token else "has no token"
            yield _task(task, "token", f"it is {record.task.state} and {has}", record)
    for shared, tasks in sorted(holders.items()):
        if len(tasks) > 1:
            told = f"{_and(tasks)} run under one token"
            yield Finding("token_twice", shared, told, "", cancel(*tasks), tuple(tasks))


def ended_tasks_are_kept_for_a_while(found: Inventory) -> Iterator[Finding]:
    for task, record in _known(found):
        kept, state = found.kept.get(task), record.task.state
        if kept is None:
            continue
        if not state.terminal and kept.ttl_ms is not None:
            told = f"it is {state} and ends by itself in {kept.ttl_ms / 1000:.0f} s"
            yield _task(task, "lifetime", told, record)
        if state.terminal and kept.ttl_ms is None:
            yield _task(task, "lifetime", f"it is {state} and is kept for ever", record)
        if not state.terminal and not kept.body:
            yield _task(task, "body", f"it is {state} and its request is gone", record)
        if not state.terminal and kept.last == _END:
            told = f"it is {state} and its log has ended: a script was stopped in the middle"
            yield _task(task, "log", told, record)


def counts_are_within_their_limits(found: Inventory) -> Iterator[Finding]:
    for task, record in _known(found):
        own = record.task
        if own.state.terminal:
            continue
        if own.attempts > record.max_attempts > 0 or own.recoveries > record.max_recoveries > 0:
            told = (
                f"{own.attempts} attempts of {record.max_attempts}, "
                f"{own.recoveries} recoveries of {record.max_recoveries}"
            )
            yield _task(task, "counts", told, record)


def slots_are_kept(found: Inventory) -> Iterator[Finding]:
    for worker in found.snapshot.workers:
        runs = [record for task in worker.tasks if (record := found.records.get(task))]
        mine = [run for run in runs if token_instance(run.task.token or "") == worker.instance]
        taken = len(mine) + len(worker.revoked)
        if worker.known and taken > worker.slots:
            yield Finding(
                "slots",
                worker.id,
                f"{worker.id} runs more than it has slots; it takes nothing more until enough of "
                "them are over",
                f"{len(mine)} runs and {len(worker.revoked)} not let go, {worker.slots} slots",
                "",
                tuple(run.task.id for run in mine),
            )


def queues_are_listed(found: Inventory) -> Iterator[Finding]:
    for queue in found.unlisted:
        yield Finding(
            "unlisted_queue",
            queue,
            f"{queue} holds tasks and is not in grid:queues, so no pass looks at it; the next "
            "claim of a worker that serves it lists it again",
            "",
            "",
        )
    for depth in found.snapshot.queues:
        if depth.depth == 0:
            yield Finding(
                "empty_queue", depth.name, f"{depth.name} is empty and in grid:queues", "", REAP
            )


def bytes_are_counted(found: Inventory) -> Iterator[Finding]:
    if found.cut:
        return
    sizes = [r.size_bytes for _, r in _known(found) if not r.task.state.terminal]
    counted_bytes = found.snapshot.queued_bytes
    if sum(sizes) != counted_bytes:
        yield Finding(
            "queued_bytes",
            "grid:totals",
            "the bytes of queued requests are miscounted, so requests may be refused for nothing",
            f"{counted_bytes} bytes are counted, {sum(sizes)} bytes are in "
            f"{counted(len(sizes), 'open task')}",
            REAP,
        )


CHECKS: tuple[Callable[[Inventory], Iterator[Finding]], ...] = (
    open_tasks_stand_in_one_place,
    open_tasks_are_due,
    lists_name_tasks_that_are,
    clients_are_of_tasks_that_have_one,
    only_running_tasks_have_tokens,
    ended_tasks_are_kept_for_a_while,
    counts_are_within_their_limits,
    slots_are_kept,
    queues_are_listed,
    bytes_are_counted,
)


def _known(found: Inventory) -> Iterator[tuple[TaskId, Record]]:
    return ((task, record) for task, record in found.records.items() if record)


def _places(found: Inventory) -> defaultdict[TaskId, list[str]]:
    places: defaultdict[TaskId, list[str]] = defaultdict(list)
    for queue, tasks in found.queued.items():
        for task in tasks:
            places[task].append(str(queue))
    for worker, tasks in found.held.items():
        for task in tasks:
            places[task].append(f"worker {worker}")
    return places


def _task(
    task: TaskId, kind: str, told: str, record: Record | None = None, mend: str = ""
) -> Finding:
    """mend: else the task, which contradicts itself, is ended, or dropped if it is over."""
    own = record.task if record else None
    facts = f"queue {own.queue}; worker {own.worker or 'none'}; run {own.run}" if own else ""
    over = own is not None and own.state.terminal
    mend = mend or (purge(task) if over else cancel(task))
    return Finding(kind, task, f"task {task}: {told}", facts, mend, (task,))


def _and(names: list[str] | list[TaskId]) -> str:
    return " and ".join(dict.fromkeys(map(str, names)))
