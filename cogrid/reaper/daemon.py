"""The reaper as a process of its own: signals, systemd, the loop."""

from __future__ import annotations

import logging
import signal
from contextlib import closing

from cogrid.model.limits import Limits
from cogrid.notify import Notify
from cogrid.reaper.loop import run
from cogrid.rules.routing import Routing
from cogrid.signals import Told
from cogrid.store.client import Store

log = logging.getLogger("cogrid.reaper")


def run_daemon(store: Store, limits: Limits, routing: Routing) -> None:
    """Run until SIGTERM or SIGINT; call it in the main thread. It is ready as soon as its loop
    turns, whether or not the server is there yet: start orders are free."""
    log.info("[start] reaper redis=%s", store.shown)
    stop = Told()
    stop.on_signals(signal.SIGTERM, signal.SIGINT)
    with closing(Notify()) as notify:
        notify.ready()
        run(store, limits, routing, stop, on_turn=notify.alive)
        notify.stopping()
    log.info("[stop] reaper")
