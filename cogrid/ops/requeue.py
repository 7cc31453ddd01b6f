"""Tasks go again: a run is taken back, a back-off ends, a dead letter is revived."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.limits import Limits
from cogrid.model.names import Queue
from cogrid.model.record import Record
from cogrid.model.task import State
from cogrid.ops.chosen import Choice, Chosen, choose
from cogrid.ops.deeds import Deed, Deeds, deed, finished, planned, tell, try_each
from cogrid.ops.operator import operator
from cogrid.rules.admission import queued_bytes_max
from cogrid.rules.grid import Grid
from cogrid.rules.places import Places
from cogrid.rules.routing import Routing
from cogrid.rules.seen import as_wished
from cogrid.store.administration import Sent, requeue, revive
from cogrid.store.client import Store
from cogrid.store.refusal import StoreError
from cogrid.store.snapshot import read_snapshot
from cogrid.store.task_lists import Listing

REQUEUE, RETRY = "task requeue", "dead retry"

_NOT = {
    "said": "text was sent to its client already, so it cannot run again: cancel it instead",
    "no_body": "its request is no longer kept",
    "unknown": "it is gone",
}


@dataclass(frozen=True, slots=True)
class Going:
    """A task and the queue that it should go to, or why it does not go."""

    record: Record
    queue: Queue | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """verb: the command. bytes_max: of all queued requests."""

    verb: str
    chosen: Chosen
    going: tuple[Going, ...]
    bytes_max: int

    @property
    def deeds(self) -> Deeds:
        """What would be done."""
        return planned(self.verb, self.chosen, (_planned(each) for each in self.going))


def plan_requeue(store: Store, choice: Choice, routing: Routing, limits: Limits) -> Plan:
    """Where tasks that run, or wait for another attempt, would go."""
    narrowed = choose(store, choice, (Listing.OPEN,))
    return _plan(store, REQUEUE, narrowed, routing, limits)


def plan_retry(store: Store, choice: Choice, routing: Routing, limits: Limits) -> Plan:
    """Where dead letters would go."""
    narrowed = choose(store, choice, (Listing.DEAD,))
    return _plan(store, RETRY, narrowed, routing, limits)


def carry_out(store: Store, choice: Choice, plan: Plan, limits: Limits) -> Deeds:
    """Do it. Each act looks once more whether it is still so."""
    by = operator()
    going = [each for each in plan.going if each.queue]
    tell(store, plan.verb, len(going), choice, by)
    calls = []
    for each in going:
        task, queue = each.record.task, each.queue
        assert queue
        calls.append(
            revive(store.keys, task.id, queue, limits.queue_max, plan.bytes_max, by)
            if plan.verb == RETRY
            else requeue(store.keys, task.id, task.token, queue, by)
        )
    outcomes: list[Sent | StoreError] = try_each(store, calls)
    said = {each.record.task.id: one for each, one in zip(going, outcomes, strict=True)}
    deeds = (
        _told(each.record, said[each.record.task.id]) if each.queue else _planned(each)
        for each in plan.going
    )
    return finished(plan.verb, by, plan.chosen, deeds)


def _plan(store: Store, verb: str, chosen: Chosen, routing: Routing, limits: Limits) -> Plan:
    snapshot = as_wished(store.read(read_snapshot(store.keys)))
    places = Places(Grid.of(snapshot, limits), routing)
    place = _revival if verb == RETRY else _again
    going = tuple(place(record, places) for record in chosen.records)
    return Plan(verb, chosen, going, queued_bytes_max(snapshot.server))


def _again(record: Record, places: Places) -> Going:
    task = record.task
    if task.state not in (State.RUNNING, State.WAITING):
        what = f"it waits in {task.queue}" if task.state is State.PENDING else f"it is {task.state}"
        dead = ": cogrid dead retry" if task.state is State.DEAD else ""
        return Going(record, None, f"it neither runs nor waits for an attempt: {what}{dead}")
    if task.state is State.RUNNING and task.streamed and task.n:
        return Going(record, None, _NOT["said"])
    avoid = task.worker if task.state is State.RUNNING else task.avoid
    return Going(record, places.own(task, avoid) if avoid else places.shared(task))


def _revival(record: Record, places: Places) -> Going:
    """A model without a home would fail at once, and the letter would be lost."""
    task = record.task
    if task.state is not State.DEAD:
        return Going(record, None, f"it is no dead letter: it is {task.state}")
    if not places.homes(task):
        return Going(record, None, f"no worker can serve {task.model} now: it stays a dead letter")
    return Going(record, places.shared(task))


def _planned(each: Going) -> Deed:
    if each.queue is None:
        return deed(each.record, False, each.why_not)
    return deed(each.record, True, "would go again", each.queue)


def _told(record: Record, said: Sent | StoreError) -> Deed:
    if isinstance(said, StoreError):
        return deed(record, False, said.message)
    match said.status:
        case "ok":
            return deed(record, True, "goes again", said.queue)
        case "moved_on":
            return deed(record, False, f"it has moved on: it is {said.state}")
        case "full":
            return deed(record, False, f"its queue is full: {said.amount} wait in it")
        case "bytes":
            return deed(record, False, f"too much is queued already: {said.amount} bytes")
        case _:
            return deed(record, False, _NOT[said.status])
