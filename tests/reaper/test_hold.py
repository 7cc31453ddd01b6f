"""The reaper doubts itself: after a silence, a restart or a step of the clock it takes nothing back
for one lease."""

from __future__ import annotations

import pytest

from tests.reaper.stage import MODEL, Stage, held

ESXI = "tasks:cpu:esxi"
CPU = f"tasks:cpu:shared:{MODEL}"


@pytest.fixture
def stuck(stage: Stage) -> Stage:
    """A dead worker with a run and a waiting task, a ghost, an orphan, a task past its limit."""
    stage.worker("esxi", slots=2)
    stage.worker("ghost", slots=2)
    stage.submit("runs", ESXI, streamed=False)
    stage.claim("esxi", ESXI)
    stage.submit("waits", ESXI)
    stage.submit("haunted", "tasks:cpu:ghost")
    stage.submit("late", model="other", queue_timeout_ms=1)
    stage.submit("left")
    stage.worker("ai-core", pool="gpu")
    stage.let_pass(21)
    for name in ("ghost", "ai-core"):
        stage.renew(name)
    stage.poll("ai-core")
    stage.redis.zadd(stage.keys.clients, {"left": 1})
    return stage


def mark(stage: Stage, **fields: object) -> None:
    stage.redis.hset(stage.keys.reaper, mapping=fields)


def number(stage: Stage, name: str) -> int:
    return int(stage.redis.hget(stage.keys.reaper, name))


@pytest.mark.parametrize("disturbed", ["silence", "restart", "failover", "clock went back"])
def test_nothing_is_ended_or_moved_for_one_lease(stuck: Stage, disturbed: str) -> None:
    last_ms = number(stuck, "last_pass")
    match disturbed:
        case "silence":
            mark(stuck, last_pass=last_ms - 3_500)
        case "restart":
            mark(stuck, run_id="another")
        case "failover":
            mark(stuck, replication_id="another")
        case _:
            mark(stuck, last_pass=last_ms + 60_000)
    report = stuck.sweep()
    assert report.held
    assert report.hold_s == stuck.limits.lease_s
    assert report.lines == ()
    for task in ("runs", "waits", "haunted", "late", "left"):
        assert stuck.task(task)["state"] in ("pending", "running"), task
    # The next pass is still within the hold, which has not grown.
    until_ms = report.hold_until_ms
    assert stuck.sweep().hold_until_ms == until_ms


def test_when_the_hold_is_over_it_acts(stuck: Stage) -> None:
    mark(stuck, run_id="another")
    assert stuck.sweep().held
    mark(stuck, hold_from=0, hold_until=0)
    report = stuck.sweep()
    assert not report.held
    assert {line.task: line.edge for line in report.lines} == {
        "runs": "requeue", "waits": "requeue", "haunted": "requeue", "late": "expire",
        "left": "cancel",
    }  # fmt: skip


def test_a_limit_that_passed_in_a_hold_is_moved_on(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("runs")
    (run,) = stage.claim("esxi", CPU)
    stage.submit("late", queue_timeout_ms=1)
    now_ms = number(stage, "last_pass")
    stage.redis.zadd(stage.keys.due, {"late": now_ms - 5_000})
    mark(stage, hold_from=now_ms - 30_000, hold_until=now_ms - 10)
    stage.renew("esxi", held=(held(run),))
    assert stage.sweep().lines == ()
    assert stage.redis.zscore(stage.keys.due, "late") == now_ms - 5_000 + 29_990


def test_a_healthy_grid_loses_nothing_in_an_outage(stage: Stage) -> None:
    """Leases ran out because the server was away; everybody comes back within the hold."""
    stage.worker("esxi", slots=2)
    stage.submit("runs", ESXI)
    (run,) = stage.claim("esxi", ESXI)
    stage.submit("waits", ESXI)
    stage.let_pass(60)
    mark(stage, last_pass=number(stage, "last_pass") - 60_000)
    assert stage.sweep().lines == ()
    stage.renew("esxi", held=(held(run),))
    stage.poll("esxi")
    mark(stage, hold_from=0, hold_until=0)
    assert stage.sweep().lines == ()
    assert stage.finish("esxi", run).status == "ok"


def test_a_starting_and_a_deleted_name_do_not_wait_for_the_hold(stage: Stage) -> None:
    stage.worker("ai-core", pool="gpu")
    stage.worker("gone")
    stage.worker("new")
    stage.submit("a", "tasks:cpu:gone")
    stage.submit("b", "tasks:cpu:new")
    mark(stage, run_id="another")
    stage.redis.delete(stage.keys.worker("gone"))
    stage.hello("new", process=2)
    report = stage.sweep()
    assert report.held
    assert {line.task: line.reason for line in report.lines} == {
        "a": "dead_worker", "b": "not_ready"
    }  # fmt: skip
