"""The reaper as a process of its own: signals, systemd, the loop."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event
from types import FrameType

from cogrid.model.limits import Limits
from cogrid.notify import Notify
from cogrid.reaper.loop import run
from cogrid.rules.routing import Routing
from cogrid.store.client import Store

log = logging.getLogger("cogrid.reaper")


def run_daemon(store: Store, limits: Limits, routing: Routing) -> None:
    """Run until SIGTERM or SIGINT; call it in the main thread. It is ready as soon as its loop
    turns, whether or not the server is there yet: start orders are free."""
    log.info("[start] reaper redis=%s", store.shown)
    with closing(Notify()) as notify, _stopped_by_signals() as stop:
        notify.ready()
        run(store, limits, routing, stop, on_turn=notify.alive)
        notify.stopping()
    log.info("[stop] reaper")


@contextmanager
def _stopped_by_signals() -> Iterator[Event]:
    stop = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
