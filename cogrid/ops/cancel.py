"""Tasks that are open are ended."""

from __future__ import annotations

from cogrid.model.record import Record
from cogrid.ops.chosen import Choice, Chosen, choose
from cogrid.ops.deeds import Deed, Deeds, deed, finished, planned, tell, try_each
from cogrid.ops.operator import operator
from cogrid.store.client import Store
from cogrid.store.refusal import StoreError
from cogrid.store.task_lists import Listing
from cogrid.store.tasks import Cancelled, cancel

VERB = "task cancel"


def chosen_to_cancel(store: Store, choice: Choice) -> Chosen:
    """The open tasks that are meant; a named one also where it is over."""
    return choose(store, choice, (Listing.OPEN,))


def plan_cancel(chosen: Chosen) -> Deeds:
    """What a cancel would do."""
    return planned(VERB, chosen, (_planned(record) for record in chosen.records))


def cancel_all(store: Store, choice: Choice, chosen: Chosen) -> Deeds:
    """End them. Their clients are told who it was."""
    by = operator()
    tell(store, VERB, len(chosen.records), choice, by)
    calls = [
        cancel(store.keys, record.task.id, f"cancelled by the operator ({by})")
        for record in chosen.records
    ]
    outcomes: list[Cancelled | StoreError] = try_each(store, calls)
    deeds = (_told(r, said) for r, said in zip(chosen.records, outcomes, strict=True))
    return finished(VERB, by, chosen, deeds)


def _planned(record: Record) -> Deed:
    if record.task.state.terminal:
        return deed(record, False, f"it is over already: {record.task.state}")
    return deed(record, True, "would be cancelled")


def _told(record: Record, said: Cancelled | StoreError) -> Deed:
    if isinstance(said, StoreError):
        return deed(record, False, said.message)
    if said.status == "ok":
        return deed(record, True, "cancelled")
    return deed(record, False, f"it is over already: {said.state or 'gone'}")
