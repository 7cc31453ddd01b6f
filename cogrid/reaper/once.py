"""Passes for somebody who waits: until one has acted without holding back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cogrid.errors import CogridError
from cogrid.model.limits import Limits
from cogrid.reaper.loop import wait_s
from cogrid.reaper.one_pass import Report, one_pass
from cogrid.rules.routing import Routing
from cogrid.store.client import Store

PATIENCE = 3
"""Leases until a hold that begins again and again is given up."""


def once(
    store: Store, limits: Limits, routing: Routing, sleep: Callable[[float], None]
) -> Iterator[Report]:
    """Each pass's report as it comes; the last one is of a pass that held nothing back and left
    nothing over. Where no other reaper runs that takes one lease, since the first pass after a
    silence cannot tell the dead from the silenced."""
    first_ms = 0
    while True:
        report = one_pass(store, limits, routing, whole=True)
        yield report
        first_ms = first_ms or report.now_ms
        if not (report.held or report.more):
            return
        if report.now_ms - first_ms > PATIENCE * limits.lease_s * 1000:
            raise CogridError(
                f"the grid at {store.shown} was disturbed again and again; nothing was taken back",
                "look at the server: restarts, failovers, a clock that jumps",
            )
        # Within half a window, so that passes are never so far apart that a hold begins anew.
        sleep(min(wait_s(report, limits, 0.0), limits.pass_window_s / 2))
