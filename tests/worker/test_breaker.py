"""The breaker of one model."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.worker.breaker import Breaker


def test_three_faults_in_a_row_open_it_for_ten_seconds() -> None:
    breaker = Breaker(Limits())
    assert [breaker.fault(100.0) for _ in range(3)] == [False, False, True]
    assert breaker.until_s == 110.0


def test_a_good_run_between_starts_the_count_again() -> None:
    breaker = Breaker(Limits())
    breaker.fault(1.0)
    breaker.fault(2.0)
    breaker.good()
    assert not breaker.fault(3.0)
    assert not breaker.fault(4.0)
    assert breaker.fault(5.0)


def test_each_quarantine_in_a_row_is_twice_as_long_up_to_five_minutes() -> None:
    breaker = Breaker(Limits())
    lengths = []
    for _ in range(8):
        breaker.trip(0.0)
        lengths.append(breaker.until_s)
    assert lengths == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_probe_reopens_but_only_a_run_clears_the_record() -> None:
    breaker = Breaker(Limits())
    breaker.trip(0.0)
    breaker.passed()
    assert not breaker.open
    breaker.trip(0.0)
    assert breaker.until_s == 20.0
    breaker.passed()
    breaker.good()
    breaker.trip(0.0)
    assert breaker.until_s == 10.0


def test_faults_of_runs_that_were_under_way_change_no_quarantine() -> None:
    breaker = Breaker(Limits())
    breaker.trip(0.0)
    assert [breaker.fault(5.0) for _ in range(4)] == [False] * 4
    assert breaker.until_s == 10.0


def test_an_engine_that_is_back_is_probed_now() -> None:
    breaker = Breaker(Limits())
    breaker.hurry(7.0)
    assert not breaker.open
    breaker.trip(0.0)
    breaker.hurry(7.0)
    assert breaker.until_s == 7.0
