"""Reading the event log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.event import Event
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading, certain
from cogrid.store.script import text

__all__ = ["Event", "Page", "read_before", "read_edges", "read_events", "read_last_event"]

A_PAGE = 1_000
"""Events in one round trip, about 150 kB."""


def read_events(keys: Keys, after: str = "-", most: int = 1000) -> Reading[tuple[Event, ...]]:
    """Events behind an id, oldest first ("-": from the first that is kept)."""
    start = after if after == "-" else f"({after}"
    (reply,) = yield [("XRANGE", keys.events, start, "+", "COUNT", most)]
    return tuple(_event(raw) for raw in certain(reply))


@dataclass(frozen=True, slots=True)
class Page:
    """Events of some edges. last: the id to go on behind. more: there may be more at once."""

    events: tuple[Event, ...]
    last: str
    more: bool


def read_edges(
    keys: Keys, edges: frozenset[bytes], after: str, most: int = A_PAGE
) -> Reading[Page]:
    """Events of these edges behind an id, oldest first, among the next ``most``. Most events are of
    tasks that go well, so only what was asked for is made into values."""
    (reply,) = yield [("XRANGE", keys.events, f"({after}", "+", "COUNT", most)]
    raw = certain(reply)
    # Scripts write the edge as the first field of every event.
    found = tuple(_event(one) for one in raw if one[1][1] in edges)
    return Page(found, text(raw[-1][0]) if raw else after, len(raw) == most)


def read_before(
    keys: Keys, before: str = "+", since_ms: int = 0, most: int = A_PAGE
) -> Reading[tuple[Event, ...]]:
    """Events before an id ("+": from the newest on), the newest first, none older than since_ms."""
    start = before if before == "+" else f"({before}"
    (reply,) = yield [("XREVRANGE", keys.events, start, since_ms or "-", "COUNT", most)]
    return tuple(_event(raw) for raw in certain(reply))


def read_last_event(keys: Keys) -> Reading[str]:
    """The newest event's id, from which following starts ("0-0" where there is none)."""
    (reply,) = yield [("XREVRANGE", keys.events, "+", "-", "COUNT", 1)]
    newest = certain(reply)
    return text(newest[0][0]) if newest else "0-0"


def _event(raw: Any) -> Event:
    fields = {text(k): text(v) for k, v in zip(raw[1][::2], raw[1][1::2], strict=True)}
    return Event(
        text(raw[0]),
        fields.get("edge", ""),
        fields.get("task", ""),
        fields.get("worker", ""),
        fields.get("token", ""),
        fields.get("reason", ""),
        int(fields.get("at_ms", "0")),
    )
