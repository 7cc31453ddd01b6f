"""The server: can it be reached, is it fit, how quick is it, what is its clock, what may we do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

from cogrid.model.snapshot import Server
from cogrid.ops.check import Check, failed, passed, warned
from cogrid.store.client import Store
from cogrid.store.clock import read_clock
from cogrid.store.fitness import read_fitness, read_roles
from cogrid.store.gaps import Part
from cogrid.store.roles import Role

AREA = "redis"
ASKED = 7
"""Round trips that are measured; the median does not mind a slow first one."""
SLOW_MS = 20.0
"""A claim is two round trips; above this they are felt in every answer."""
SKEW_S = 2.0
"""Redis' clock alone decides; a host that is off by more misleads whoever reads its logs."""
FULL = 0.8
"""Part of maxmemory above which it is said."""


def check_redis(store: Store, server: Server) -> Iterator[Check]:
    """Everything about the server but whether it answers. server: its facts, as a snapshot has
    them."""
    yield from _fitness(store, server)
    yield from _persistence(server)
    yield from _memory(server)
    yield _roles(store)


def check_time(
    store: Store,
    clock: Callable[[], float] = time.time,
    stopwatch: Callable[[], float] = time.perf_counter,
) -> Iterator[Check]:
    """Round trips, and this machine's clock beside the server's."""
    trips_s, skews_s = [], []
    for _ in range(ASKED):
        before_s, began_s = clock(), stopwatch()
        there_s = store.read(read_clock()) / 1000
        trips_s.append(stopwatch() - began_s)
        skews_s.append(before_s + trips_s[-1] / 2 - there_s)
    yield _latency(1000 * median(trips_s))
    if Part.CLOCK not in store.unread:
        yield _skew(median(skews_s))


def _latency(trip_ms: float) -> Check:
    what = f"a round trip takes {trip_ms:.1f} ms"
    if trip_ms <= SLOW_MS:
        return passed(AREA, what)
    return warned(AREA, what, "look at the network, or at the server's load (SLOWLOG GET)")


def _skew(skew_s: float) -> Check:
    if abs(skew_s) <= SKEW_S:
        return passed("clock", f"this machine and Redis agree within {abs(skew_s):.1f} s")
    side = "ahead of" if skew_s > 0 else "behind"
    return warned(
        "clock",
        f"this machine's clock is {abs(skew_s):.1f} s {side} Redis'",
        "set both by NTP; the grid goes by Redis' clock, but logs cannot be compared",
    )


def _fitness(store: Store, server: Server) -> Iterator[Check]:
    problems = store.read(read_fitness(store.keys))
    for problem in problems:
        verdict = failed if problem.fatal else warned
        yield verdict(AREA, problem.sentence, problem.hint)
    if not problems:
        yield passed(AREA, f"{server.flavour} {server.version} fits, and so do our rights in it")


def _persistence(server: Server) -> Iterator[Check]:
    if server.append_only is None:
        yield warned(AREA, "it hides whether it keeps what it has", "give our user +info")
    elif server.append_only:
        yield passed(AREA, "the append-only file is on")
    else:
        yield warned(
            AREA,
            "the append-only file is off: a restart loses what waits and what runs",
            "CONFIG SET appendonly yes, and CONFIG REWRITE",
        )
    if server.rdb_ok is False:
        yield failed(AREA, "it cannot save to disk", "look at its log; its disk may be full")


def _memory(server: Server) -> Iterator[Check]:
    if not server.maxmemory_bytes:
        return
    part = server.used_memory_bytes / server.maxmemory_bytes
    what = f"{part:.0%} of maxmemory is used"
    if part < FULL:
        yield passed(AREA, what)
    else:
        yield warned(AREA, what, "raise maxmemory, or purge: cogrid task purge, cogrid dead purge")


def _roles(store: Store) -> Check:
    able = store.read(read_roles(store.keys))
    if able is None:
        return passed(AREA, "its user may run no scripts, so it can only look")
    if able:
        return passed(AREA, f"its user has the rights of: {', '.join(able)}")
    return failed(
        AREA, f"its user has the rights of no role ({', '.join(Role)})", "see docs/security.md"
    )
