"""The life of one task, told from a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cogrid.errors import NotFoundError, UsageError
from cogrid.model.names import TaskId
from cogrid.model.task import Band
from cogrid.ops.explain import TakerRow, explain, grouped
from cogrid.store.tasks import cancel
from tests.reaper.stage import MODEL, Stage, held
from tests.servers import Server

SHARED = f"tasks:cpu:shared:{MODEL}"
GPU = f"tasks:gpu:shared:{MODEL}"


@pytest.fixture
def stage(server: Server) -> Iterator[Stage]:
    made = Stage(server)
    made.settle()
    yield made
    made.close()


def whats(found: object) -> list[str]:
    return [moment.what for moment in found.timeline]  # type: ignore[attr-defined]


def test_a_task_that_was_moved_claimed_and_done(stage: Stage) -> None:
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("aa11", "tasks:cpu:esxi", why="model gemma3:1b: as asked")
    stage.let_pass(17)
    stage.renew("esxi")
    stage.worker("ai-core", pool="gpu")
    stage.sweep()
    (task,) = stage.claim("ai-core", GPU)
    stage.say(task)
    running = explain(stage.store, "aa", stage.limits)
    assert running.now.startswith("it runs on ai-core for ")
    assert "1 piece of text, progress due within" in running.now
    stage.finish("ai-core", task, finish_reason="stop")
    found = explain(stage.store, "aa11", stage.limits)
    assert found.task is not None
    assert found.task.why == "model gemma3:1b: as asked"
    assert (found.now, found.complete, found.takers, found.wait) == ("it is done", True, (), None)
    assert whats(found) == ["submitted", "moved", "claimed", "first text", "done"]
    moved = found.timeline[1]
    assert moved.reason is not None
    assert moved.reason.startswith("ghost_pending registered, never polled for 17.")
    assert (moved.worker, moved.queue) == ("esxi", GPU)
    assert found.timeline[0].after_s == 0


def test_a_task_that_waits_says_behind_whom_and_for_how_long(stage: Stage) -> None:
    stage.worker("esxi", slots=1)
    stage.worker("other", "llama3.2:1b")
    stage.worker("gpu-1", pool="gpu")
    stage.submit("t0")
    stage.claim("esxi", SHARED)
    for task in ("t1", "t2", "t3"):
        stage.submit(task)
    stage.submit("t4", band=Band.BACKGROUND)
    rate = {"mean_s": "2.0000", "var": "0.2500"}
    stage.redis.hset(stage.keys.rate(SHARED), mapping=rate)
    stage.redis.pexpire(stage.keys.rate(SHARED), 60_000)
    found = explain(stage.store, "t4", stage.limits)
    assert found.now.startswith(f"it waits in {SHARED}, place 4, for 0.")
    assert found.wait is not None
    assert [(each.user, each.band, each.tasks) for each in found.wait.before] == [
        ("ada", "interactive", 3)
    ]
    assert found.wait.next_before == ("t1", "t2", "t3")
    assert found.wait.estimate is not None
    spread_s = found.wait.estimate.most_s - found.wait.estimate.expected_s
    assert (found.wait.estimate.expected_s, spread_s) == (8.0, 1.0)
    assert sorted(found.takers or (), key=lambda each: each.worker) == [
        TakerRow("esxi", True, False, "1 of 1 slots are taken"),
        TakerRow("gpu-1", False, False, "it is in pool gpu, the task waits in cpu"),
        TakerRow("other", False, False, "does not have the model"),
    ]


def test_the_estimate_is_absent_where_nothing_was_claimed(stage: Stage) -> None:
    stage.submit("t1")
    found = explain(stage.store, "t1", stage.limits)
    assert found.wait is not None
    assert (found.wait.place, found.wait.before, found.wait.estimate) == (1, (), None)


def test_a_back_off_says_after_what_and_how_long(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    (task,) = stage.claim("esxi", SHARED)
    stage.finish("esxi", task, "failed", message="500", retry=True, backoff_ms=20_000)
    found = explain(stage.store, "t1", stage.limits)
    assert found.now.startswith("attempt 1 failed on esxi; it waits before the next, for another ")
    assert whats(found) == ["submitted", "claimed", "retried"]
    assert found.timeline[-1].told == "after a failed attempt on esxi: 500"


def test_a_run_whose_progress_is_overdue(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("t1")
    (task,) = stage.claim("esxi", SHARED)
    stage.let_pass(10)
    stage.renew("esxi", held=(held(task, silent_s=35, allowed_s=30),))
    found = explain(stage.store, "t1", stage.limits)
    assert ", no text yet, progress overdue for 5." in found.now


def test_a_task_that_is_kept_no_longer_is_told_from_the_event_log(stage: Stage) -> None:
    stage.submit("t1aaa")
    stage.submit("t2bbb")
    stage.store.do(cancel(stage.keys, TaskId("t1aaa"), "cancelled by ada@home"))
    stage.redis.delete("task:t1aaa", "task:t1aaa:out")
    stage.redis.zrem("grid:finished", "t1aaa")
    found = explain(stage.store, "t1", stage.limits)
    assert (found.id, found.task, found.complete) == ("t1aaa", None, True)
    assert whats(found) == ["submitted", "cancelled"]
    assert found.now == "cancelled cancelled; the task itself is kept no longer"


def test_an_ended_task_says_why(stage: Stage) -> None:
    stage.submit("t1")
    stage.store.do(cancel(stage.keys, TaskId("t1"), "cancelled by ada@home"))
    found = explain(stage.store, "t1", stage.limits)
    assert found.now == "it is cancelled: cancelled by ada@home"


def test_what_is_no_task(stage: Stage) -> None:
    stage.submit("t1aaa")
    stage.submit("t1bbb")
    with pytest.raises(NotFoundError, match="more than one task begins with t1: t1aaa, t1bbb"):
        explain(stage.store, "t1", stage.limits)
    with pytest.raises(NotFoundError, match="there is no task zz"):
        explain(stage.store, "zz", stage.limits)
    with pytest.raises(UsageError, match="is no task's id"):
        explain(stage.store, "a*", stage.limits)


def test_workers_with_the_same_reason_are_told_together() -> None:
    rows = [TakerRow("a", False, False, "dead"), TakerRow("b", True, True, None),
            TakerRow("c", False, False, "dead")]  # fmt: skip
    assert grouped(rows) == (("dead", ("a", "c")), ("", ("b",)))
