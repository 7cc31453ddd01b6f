"""The event log, looked through and followed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

import pytest

from cogrid.model.names import TaskId
from cogrid.ops.events import EventRow, Filter, events, follow, resolved
from cogrid.store.tasks import cancel
from tests.reaper.stage import MODEL, Stage

SHARED = f"tasks:cpu:shared:{MODEL}"


@pytest.fixture
def grid(stage: Stage) -> Stage:
    stage.worker("esxi")
    stage.submit("aa11")
    stage.submit("bb22")
    stage.claim("esxi", SHARED)
    return stage


def kinds(rows: tuple[EventRow, ...]) -> list[str]:
    return [row.kind for row in rows]


def test_the_latest_come_last(grid: Stage) -> None:
    found = events(grid.store, Filter(), 100)
    assert kinds(found.events) == [
        "hold", "hello", "registered", "submitted", "submitted", "claimed"
    ]  # fmt: skip
    assert not found.cut
    claimed = found.events[-1]
    assert (claimed.task, claimed.worker, claimed.reason) == ("aa11", "esxi", SHARED)
    assert claimed.run == "esxi-1:2:1"
    assert claimed.at is not None
    assert claimed.at.endswith("Z")
    assert found.events[2].reason == MODEL, "not the whole offer"


def test_a_limit_takes_the_latest_that_fit(grid: Stage) -> None:
    found = events(grid.store, Filter(kinds=("submitted", "claimed")), 2)
    assert (kinds(found.events), found.cut) == (["submitted", "claimed"], True)
    none = events(grid.store, Filter(), 0)
    assert (none.events, none.cut) == ((), True)


def test_filters(grid: Stage) -> None:
    assert kinds(events(grid.store, Filter(task="bb22"), 9).events) == ["submitted"]
    assert kinds(events(grid.store, Filter(worker="esxi"), 9).events) == [
        "hello", "registered", "claimed"
    ]  # fmt: skip
    both = Filter(task="aa11", kinds=("claimed", "done"))
    assert kinds(events(grid.store, both, 9).events) == ["claimed"]


def test_since(grid: Stage) -> None:
    old = {"edge": "hold", "task": "", "worker": "", "token": "", "reason": "", "at_ms": 1}
    grid.redis.delete("grid:events")
    grid.redis.xadd("grid:events", old, id="1-0")
    grid.submit("cc33")
    assert kinds(events(grid.store, Filter(), 9).events) == ["hold", "submitted"]
    assert kinds(events(grid.store, Filter(since_s=60), 9).events) == ["submitted"]


def test_more_than_a_page(grid: Stage) -> None:
    pipe = grid.redis.pipeline()
    fields = {"edge": "claimed", "task": "x", "worker": "", "token": "", "reason": "", "at_ms": 1}
    for _ in range(2_500):
        pipe.xadd("grid:events", fields)
    pipe.execute()
    found = events(grid.store, Filter(task="aa11"), 9)
    assert (kinds(found.events), found.cut) == (["submitted", "claimed"], False)


def test_following_tells_what_was_and_what_comes_once(grid: Stage) -> None:
    submit = partial(grid.submit, "cc33")
    stop = partial(grid.store.do, cancel(grid.keys, TaskId("cc33"), "by ada"))
    steps: list[Callable[[], object]] = [submit, stop]

    def sleep(_: float) -> None:
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    rows = follow(grid.store, Filter(kinds=("submitted", "cancelled")), 1, sleep)
    seen = [(row.kind, row.task) for row in islice(rows, 3)]
    with pytest.raises(KeyboardInterrupt):
        next(rows)
    assert seen == [("submitted", "bb22"), ("submitted", "cc33"), ("cancelled", "cc33")]


def test_a_task_is_named_by_its_beginning(grid: Stage) -> None:
    assert resolved(grid.store, Filter(task="aa")).task == "aa11"
    assert resolved(grid.store, Filter(task="gone")).task == "gone", "it may be in the log"
