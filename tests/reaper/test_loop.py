"""Pass after pass: when the next one comes, what is said once, what stops it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cogrid.errors import CogridError, UnreachableError
from cogrid.model.limits import Limits
from cogrid.reaper.line import Line
from cogrid.reaper.loop import run, wait_s
from cogrid.reaper.once import once
from cogrid.reaper.one_pass import Report
from cogrid.rules.routing import Routing
from cogrid.signals import Told
from tests.reaper.stage import MODEL, Stage
from tests.servers import Server
from tests.wait import until

QUICK = replace(Limits(), tick_s=0.05, lease_s=0.4, renew_s=0.1)


@contextmanager
def looping(stage: Stage) -> Iterator[threading.Thread]:
    """The loop in a thread, with a store of its own."""
    stop = Told()
    caught: list[BaseException] = []

    def work() -> None:
        try:
            run(stage.store, stage.limits, stage.routing, stop)
        except UnreachableError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(10)
        stage.close()
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("next_ms", "more", "expected_s"),
    [
        (None, False, 1.0),
        (1_500, False, 0.501),
        (9_000, False, 1.0),
        (1_001, False, 0.2),
        (1_500, True, 0.0),
    ],
)
def test_the_next_pass_comes_when_something_is_due(
    next_ms: int | None, more: bool, expected_s: float
) -> None:
    report = Report(now_ms=1_000, next_ms=next_ms, more=more)
    assert wait_s(report, Limits(), chance=0.0) == pytest.approx(expected_s)


def test_reapers_do_not_go_in_step() -> None:
    assert wait_s(Report(now_ms=1_000), Limits(), chance=1.0) == pytest.approx(0.9)


def test_a_dead_workers_task_runs_elsewhere(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole in real time, at a fiftieth of the defaults."""
    caplog.set_level(logging.INFO, "cogrid.reaper")
    stage = Stage(server, QUICK)
    other = Stage(server, replace(QUICK, lease_s=30))
    other.worker("ai-core", pool="gpu")
    with looping(stage):
        until(lambda: "at work" in caplog.text)
        other.poll("ai-core")
        stage2 = Stage(server, QUICK)
        stage2.hello("esxi")
        stage2.renew("esxi")
        stage2.submit("cb305e3a", "tasks:cpu:esxi")
        until(lambda: stage2.task("cb305e3a")["queue"] == f"tasks:gpu:shared:{MODEL}", 5)
        stage2.close()
    assert "holding back for 0.4 s: this is the first pass on this server" in caplog.text
    assert caplog.text.count("at work") == 1
    assert "[reaper] REQUEUE task=cb305e3a worker_id=esxi reason=dead_worker" in caplog.text
    other.close()


def test_it_outlives_the_server(
    own_server: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "cogrid.reaper")
    server = own_server()
    with looping(Stage(server, QUICK)):
        until(lambda: "at work" in caplog.text)
        server.stop()
        until(lambda: "cannot be reached" in caplog.text)
        server.start()
        until(lambda: caplog.text.count("at work") == 2)
    assert caplog.text.count("cannot be reached") == 1
    # The new server knows of no pass: it holds back again, and says so.
    assert caplog.text.count("holding back") == 2


def test_a_fault_of_ours_does_not_end_it(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = iter([ValueError("odd"), ValueError("odd")])

    def faulty(*args: object) -> Report:
        for fault in faults:
            raise fault
        return Report(now_ms=1_000, lines=(Line("fail", "t", message="m", hint="cure"),))

    monkeypatch.setattr("cogrid.reaper.loop.one_pass", faulty)
    with looping(Stage(server, QUICK)):
        until(lambda: "[reaper] HINT cure" in caplog.text)
    assert caplog.text.count("a pass failed; trying on") == 1
    assert "[reaper] FAIL task=t: m" in caplog.text


def test_a_newer_cogrid_ends_it(server: Server) -> None:
    stage = Stage(server, QUICK)
    stage.redis.hset("grid:reaper", "schema", 2)
    with looping(stage) as thread:
        thread.join(10)
        assert not thread.is_alive()


def test_once_waits_for_one_lease_where_no_reaper_runs(server: Server) -> None:
    stage = Stage(server, QUICK)
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("cb305e3a", "tasks:cpu:esxi")
    stage.let_pass(1)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        # Time that is slept away is taken off what the reaper waits for.
        slept.append(seconds)
        ms = round(seconds * 1000) + 1
        hold_ms = int(stage.redis.hget("grid:reaper", "hold_until"))
        stage.redis.hset("grid:reaper", "hold_until", hold_ms - ms)

    reports = list(once(stage.store, stage.limits, Routing(), sleep))
    assert [report.held for report in reports] == [True] * len(slept) + [False]
    assert sum(slept) == pytest.approx(QUICK.lease_s, abs=0.1)
    assert [line.task for line in reports[-1].lines] == ["cb305e3a"]
    stage.close()


def test_once_acts_at_once_beside_another_reaper(stage: Stage) -> None:
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("cb305e3a", "tasks:cpu:esxi")
    stage.let_pass(21)

    def sleep(_: float) -> None:
        raise AssertionError("must not wait")

    (report,) = once(stage.store, stage.limits, Routing(), sleep)
    assert [line.task for line in report.lines] == ["cb305e3a"]


def test_once_gives_up_where_holds_never_end(server: Server) -> None:
    stage = Stage(server, replace(QUICK, lease_s=0.01))

    def disturb(_: float) -> None:
        stage.redis.hset("grid:reaper", "run_id", "another")

    with pytest.raises(CogridError, match="disturbed again and again"):
        list(once(stage.store, stage.limits, Routing(), disturb))
    stage.close()
