"""Fire drills on a real server with a real reaper, at a tenth of the default limits."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cogrid.model.limits import Limits
from cogrid.ops.drill import Drill, Moment, plan_drill
from cogrid.reaper.loop import run as run_reaper
from cogrid.rules.drill import NOTICED, Fault, bound_s
from cogrid.rules.routing import Routing
from cogrid.signals import Told
from cogrid.store.address import parse_address
from cogrid.store.client import Store
from tests.reaper.stage import Stage
from tests.servers import Server
from tests.store.checker import violations

LIMITS = Limits().scaled(0.1)


@contextlib.contextmanager
def reaping(server: Server) -> Iterator[None]:
    """A reaper at work, past the hold of its first pass."""
    stop, store = Told(), Store.connect(parse_address(server.url))
    stage = Stage(server, LIMITS)
    stage.settle()
    thread = threading.Thread(target=run_reaper, args=(store, LIMITS, Routing(), stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        store.close()
        stage.close()


def left_behind(server: Server) -> list[str]:
    """Keys that would stay for ever, but for the grid's own."""
    own = {"grid:events", "grid:reaper", "grid:totals"}
    client: Any = server.client
    keys = (key.decode() for key in client.scan_iter())
    return [key for key in keys if key not in own and client.ttl(key) == -1]


def a_drill(store: Store, fault: Fault, told: list[Moment] | None = None) -> Drill:
    moments = told if told is not None else []
    return Drill(store, LIMITS, plan_drill(store, LIMITS, fault), moments.append)


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    made = Store.connect(parse_address(server.url))
    yield made
    made.close()


@pytest.mark.parametrize("fault", Fault)
def test_the_grid_recovers_and_nothing_is_left(server: Server, store: Store, fault: Fault) -> None:
    told: list[Moment] = []
    with reaping(server):
        result = a_drill(store, fault, told).run()
        assert violations(server.client) == []
    assert result.reason == result.expected == NOTICED[fault]
    trigger_s = bound_s(fault, LIMITS, 0) - 2 * LIMITS.tick_s
    assert result.noticed_s is not None
    assert result.recovered_s is not None
    assert trigger_s - 0.15 <= result.noticed_s <= result.recovered_s
    assert result.ok is (result.recovered_s <= result.bound_s)
    assert result.moments == tuple(told)
    assert told[-1].what == f"{result.name}-b has the task"
    assert left_behind(server) == []
    client: Any = server.client
    events = [fields for _, fields in client.xrange("grid:events")]
    notes = [e[b"reason"].decode() for e in events if e[b"edge"] == b"operator"]
    assert notes == [f"drill {fault}: {result.name} by {result.by}"]


def test_without_a_reaper_it_fails_and_says_so(server: Server, store: Store) -> None:
    result = a_drill(store, Fault.GHOST).run()
    assert (result.ok, result.recovered_s, result.reason) == (False, None, None)
    assert "no reaper is running" in (result.hint or "")
    assert left_behind(server) == []


def test_an_interrupted_drill_cleans_up(server: Server, store: Store) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    drill = Drill(store, LIMITS, plan_drill(store, LIMITS, Fault.ZOMBIE), lambda _: None, interrupt)
    with pytest.raises(KeyboardInterrupt):
        drill.run()
    assert left_behind(server) == []
    assert violations(server.client) == []


def test_the_next_one_sweeps_up_after_one_that_was_killed(server: Server, store: Store) -> None:
    stage = Stage(server, LIMITS)
    stage.settle()
    stage.worker("drill-00beef-a", "drill-00beef", pool="drill-00beef")
    stage.worker("drill-mine", "mine", pool="mine")
    stage.let_pass(3)
    a_drill(store, Fault.GHOST).run()
    client: Any = server.client
    assert client.zrange("grid:workers", 0, -1) == [b"drill-mine"]
    stage.close()


def test_nobody_elses_work_is_touched(server: Server, store: Store) -> None:
    stage = Stage(server)
    with reaping(server):
        stage.worker("esxi")
        stage.submit("t1")
        stage.claim("esxi", "tasks:cpu:shared:gemma3:1b", allowed_s=600)
        before = stage.task("t1")
        a_drill(store, Fault.ZOMBIE).run()
    assert stage.task("t1") == before
    stage.close()


@pytest.mark.parametrize(
    ("fault", "hold_s", "bound"),
    [
        (Fault.GHOST, 0, 17), (Fault.DEAD, 0, 22), (Fault.ZOMBIE, 0, 7), (Fault.ZOMBIE, 12, 14),
        (Fault.DEAD, 12, 22),
    ],
)  # fmt: skip
def test_the_bounds_are_the_grids_own(fault: Fault, hold_s: float, bound: float) -> None:
    assert bound_s(fault, Limits(), hold_s) == bound
