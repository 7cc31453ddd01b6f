"""Many tasks, and many reapers at once."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

from cogrid.model.limits import Limits
from cogrid.reaper.one_pass import Report, one_pass
from tests.reaper.stage import MODEL, Stage
from tests.servers import Server

CPU = f"tasks:cpu:shared:{MODEL}"


def seed_running(stage: Stage, count: int, worker: str, due_ms: int) -> None:
    """So many runs of a worker, written as the scripts leave them."""
    pipe = stage.redis.pipeline(transaction=False)
    now_ms = int(stage.redis.time()[0]) * 1000
    for n in range(count):
        pipe.hset(
            f"task:t{n}",
            mapping={
                "kind": "chat", "state": "running", "queue": CPU, "model": MODEL, "user": "ada",
                "band": 0, "run": now_ms, "n": 0, "token": f"{worker}-1:1:{n}", "worker": worker,
                "streamed": 1, "size": 2, "keep_ms": 600_000, "max_recoveries": 3, "client": 0,
                "queued_at": now_ms, "submitted_at": now_ms, "claimed_at": now_ms,
                "queue_timeout_ms": 0,
            },
        )  # fmt: skip
        pipe.zadd("grid:due", {f"t{n}": due_ms})
        pipe.sadd(f"worker:{worker}:tasks", f"t{n}")
    pipe.execute()


def test_several_reapers_recover_each_task_once(server: Server) -> None:
    stages = [Stage(server) for _ in range(5)]
    first = stages[0]
    first.settle()
    first.worker("ai-core", pool="gpu", slots=8)
    first.hello("esxi", slots=1000)
    seed_running(first, 500, "esxi", due_ms=1 << 52)
    first.let_pass(21)
    first.renew("ai-core")
    first.poll("ai-core")

    def until_done(stage: Stage) -> list[Report]:
        reports = []
        while stage.redis.scard("worker:esxi:tasks"):
            reports.append(stage.sweep())
        return reports

    with ThreadPoolExecutor(len(stages)) as pool:
        passes = [report for reports in pool.map(until_done, stages) for report in reports]
    told = [line.task for report in passes for line in report.lines]
    assert len(told) == len(set(told)) == 500
    assert sorted(first.edges("reaped")) == sorted(told)
    assert {first.task(f"t{n}")["recoveries"] for n in range(500)} == {"1"}
    for stage in stages:
        stage.close()


def test_what_is_due_is_worked_off_in_bounded_passes(server: Server) -> None:
    stage = Stage(server)
    stage.settle()
    stage.worker("esxi", slots=3000)
    seed_running(stage, 2_500, "esxi", due_ms=1)
    sizes = []
    while True:
        report = one_pass(stage.store, stage.limits, stage.routing, clock=lambda: 0.0)
        sizes.append(len(report.lines))
        if not report.more:
            break
    assert sizes == [1_000, 1_000, 500]
    assert stage.redis.zcard(CPU) == 2_500
    stage.close()


def test_a_pass_stops_before_its_time_is_over(server: Server) -> None:
    stage = Stage(server)
    stage.settle()
    stage.worker("esxi", slots=100)
    seed_running(stage, 100, "esxi", due_ms=1)
    ticks = itertools.count(step=0.4)
    report = one_pass(stage.store, stage.limits, stage.routing, clock=lambda: next(ticks))
    assert report.more
    # Three trips of 25, of which upkeep takes two acts: at 0, 0.4 and 0.8 of 0.9 s.
    assert len(report.lines) == 73
    assert stage.sweep().more is False
    assert stage.redis.zcard(CPU) == 100
    stage.close()


def test_a_dead_workers_long_queue_moves_in_bounded_passes(stage: Stage) -> None:
    stage.worker("esxi")
    for n in range(230):
        stage.submit(f"t{n}", "tasks:cpu:esxi")
    stage.redis.delete("worker:esxi")
    moved = []
    while True:
        report = stage.sweep()
        moved += [line.task for line in report.lines]
        if not report.more:
            break
    assert sorted(moved) == sorted(f"t{n}" for n in range(230))
    assert stage.redis.zcard(CPU) == 230


def test_ended_tasks_leave_the_lists_faster_than_they_can_come(stage: Stage) -> None:
    stage.redis.zadd("grid:finished", {f"t{n}": n for n in range(1_700)})
    stage.sweep()
    assert stage.redis.zcard("grid:finished") == 0


def test_a_pass_costs_the_same_however_many_run(server: Server) -> None:
    """Measured in commands, which do not depend on the machine."""
    stage = Stage(server, Limits())
    stage.settle()
    stage.worker("esxi", slots=10)
    stage.sweep()

    def work() -> tuple[int, int]:
        before = {**stage.redis.info("commandstats"), **stage.redis.info("stats")}
        stage.sweep()
        after = {**stage.redis.info("commandstats"), **stage.redis.info("stats")}
        calls = sum(
            after[name]["calls"] - before.get(name, {"calls": 0})["calls"]
            for name in after
            if name.startswith("cmdstat_") and name != "cmdstat_info"
        )
        sent = after["total_net_output_bytes"] - before["total_net_output_bytes"]
        return calls, sent

    idle, idle_bytes = work()
    seed_running(stage, 1_000, "esxi", due_ms=1 << 52)
    stage.redis.hset("worker:esxi", "slots", 1_000)
    busy, busy_bytes = work()
    assert busy <= idle
    assert busy_bytes < idle_bytes + 1_000
    stage.close()
