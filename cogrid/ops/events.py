"""What has happened on the grid, and what happens while one looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import msgspec

from cogrid.errors import NotFoundError
from cogrid.model.event import Event
from cogrid.model.worker import Offer
from cogrid.ops.found import the_task
from cogrid.ops.times import iso
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.events import A_PAGE, read_before, read_events, read_last_event

_offers = msgspec.json.Decoder(tuple[Offer, ...])

LOOKED_AT = 100_000
"""Events that are looked at: all that the log keeps, in pages."""
POLL_S = 0.5
"""How often a follower looks for more."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events are wanted; "" and () are all. since_s: none older than this."""

    task: str = ""
    worker: str = ""
    kinds: tuple[str, ...] = ()
    since_s: float | None = None

    def fits(self, event: Event) -> bool:
        """True for an event that is wanted."""
        return (
            self.task in ("", event.task)
            and self.worker in ("", event.worker)
            and (not self.kinds or event.edge in self.kinds)
        )


@dataclass(frozen=True, slots=True)
class EventRow:
    """One transition. at: Redis time. kind: submitted, claimed, reaped, registered, …; reason: a
    word or a sentence, as the kind has it. run: the token of the run, null where there is none."""

    id: str
    at: str | None
    kind: str
    task: str | None
    worker: str | None
    run: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class EventList:
    """The oldest first. cut: more fit than were asked for, or the log was longer than is looked
    through."""

    events: tuple[EventRow, ...]
    cut: bool


def events(store: Store, wanted: Filter, most: int) -> EventList:
    """The latest events that fit."""
    since_ms = 0
    if wanted.since_s is not None:
        since_ms = max(0, store.read(read_clock()) - round(wanted.since_s * 1000))
    found: list[Event] = []
    for event in newest_first(store, since_ms):
        if event is None:
            return _listed(found, cut=True)
        if wanted.fits(event):
            if len(found) == most:
                return _listed(found, cut=True)
            found.append(event)
    return _listed(found, cut=False)


def newest_first(
    store: Store, since_ms: int = 0, looked_at: int = LOOKED_AT
) -> Iterator[Event | None]:
    """Every event back to an instant (Redis ms), page by page; None at the end where the search
    was cut short."""
    before, seen = "+", 0
    while seen < looked_at:
        page = store.read(read_before(store.keys, before, since_ms))
        yield from page
        if len(page) < A_PAGE:
            return
        before, seen = page[-1].id, seen + len(page)
    yield None


def follow(
    store: Store, wanted: Filter, most: int, sleep: Callable[[float], None]
) -> Iterator[EventRow]:
    """The latest events that fit, then those that come, for as long as one listens."""
    last = store.read(read_last_event(store.keys))
    for row in events(store, wanted, most).events:
        if _order(row.id) <= _order(last):
            yield row
    while True:
        page = store.read(read_events(store.keys, last, A_PAGE))
        yield from (row_of(event) for event in page if wanted.fits(event))
        if page:
            last = page[-1].id
        if len(page) < A_PAGE:
            sleep(POLL_S)


def resolved(store: Store, wanted: Filter) -> Filter:
    """The filter with the task's whole id. A task that is gone from the lists may still be in the
    log, so what is not found is taken as it is written."""
    if not wanted.task:
        return wanted
    try:
        return replace(wanted, task=the_task(store, wanted.task))
    except NotFoundError:
        return wanted


def row_of(event: Event) -> EventRow:
    """An event as it is shown."""
    return EventRow(
        event.id,
        iso(event.at_ms),
        event.edge,
        event.task or None,
        event.worker or None,
        event.token or None,
        _reason(event) or None,
    )


def _reason(event: Event) -> str:
    """A registration says everything of its models; their names are enough here."""
    if event.edge != "registered":
        return event.reason
    try:
        return ", ".join(offer.name for offer in _offers.decode(event.reason))
    except msgspec.MsgspecError:
        return event.reason


def _listed(newest: list[Event], cut: bool) -> EventList:
    return EventList(tuple(row_of(event) for event in reversed(newest)), cut)


def _order(event_id: str) -> tuple[int, int]:
    at, _, n = event_id.partition("-")
    return int(at), int(n or 0)
