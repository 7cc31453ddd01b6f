"""The connections that one call has opened in its threads, so that they can be ended together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar


class Crew:
    """Tells every command of a call to stop, and waits until each has ended what it ran."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._busy = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """In this thread, connections that are opened belong to the crew."""
        token = _crew.set(self)
        try:
            yield
        finally:
            _crew.reset(token)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """While something runs on a host."""
        with self._changed:
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def end(self, wait_s: float) -> None:
        """Has everything ended that still runs, and waits for it."""
        self.stop.set()
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, wait_s)


_crew: ContextVar[Crew | None] = ContextVar("crew", default=None)


def current() -> Crew:
    """The crew of this thread; outside of any, a new one that nobody ends."""
    return _crew.get() or Crew()
