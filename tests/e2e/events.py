"""The event log of a grid, read on from where it was read to."""

from __future__ import annotations

from cogrid.store.client import Store
from cogrid.store.events import Event, read_events

PAGE = 5000


class Log:
    """All events so far, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events: list[Event] = []

    def read(self) -> list[Event]:
        """Those that are there now."""
        while True:
            after = self._events[-1].id if self._events else "-"
            page = self._store.read(read_events(self._store.keys, after, PAGE))
            self._events += page
            if len(page) < PAGE:
                return self._events
