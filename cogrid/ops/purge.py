"""Ended tasks and dead letters are dropped before their time."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.model.names import TaskId
from cogrid.model.record import Record
from cogrid.model.task import State
from cogrid.ops.chosen import Choice, Chosen, choose
from cogrid.ops.deeds import Deed, Deeds, deed, finished, planned, tell
from cogrid.ops.operator import operator
from cogrid.store.administration import PURGED_A_CALL, purge
from cogrid.store.client import Store
from cogrid.store.stories import read_records
from cogrid.store.task_lists import Listing

TASKS, DEAD = "task purge", "dead purge"


def chosen_to_purge(store: Store, choice: Choice, dead: bool) -> Chosen:
    """The ended tasks, or the dead letters, that are meant."""
    return choose(store, choice, (Listing.DEAD if dead else Listing.ENDED,))


def plan_purge(chosen: Chosen, dead: bool) -> Deeds:
    """What a purge would do."""
    verb = DEAD if dead else TASKS
    return planned(verb, chosen, (_planned(record, dead) for record in chosen.records))


def purge_all(store: Store, choice: Choice, chosen: Chosen, dead: bool, limits: Limits) -> Deeds:
    """Drop them. What ended a moment ago stays, since its client may not have read the end: that
    takes a coordinator at most ``client_renew_s``."""
    by, verb = operator(), DEAD if dead else TASKS
    ids = tuple(r.task.id for r in chosen.records if _planned(r, dead).done)
    tell(store, verb, len(ids), choice, by)
    least_ms = round(2 * limits.client_renew_s * 1000)
    for at in range(0, len(ids), PURGED_A_CALL):
        store.do(purge(store.keys, ids[at : at + PURGED_A_CALL], dead, least_ms))
    left = store.read(read_records(store.keys, ids))
    deeds = (_told(record, dead, left) for record in chosen.records)
    return finished(verb, by, chosen, deeds)


def _planned(record: Record, dead: bool) -> Deed:
    state = record.task.state
    if not state.terminal:
        return deed(record, False, f"it is {state}: cogrid task cancel ends it")
    if dead is not (state is State.DEAD):
        other = "cogrid dead purge" if state is State.DEAD else "cogrid task purge"
        return deed(record, False, f"it is {state}: {other} drops such")
    return deed(record, True, "would be dropped")


def _told(record: Record, dead: bool, left: dict[TaskId, Record | None]) -> Deed:
    plan = _planned(record, dead)
    if not plan.done:
        return plan
    if left.get(record.task.id) is None:
        return deed(record, True, "dropped")
    return deed(record, False, "it ended only now: try again in some seconds")
