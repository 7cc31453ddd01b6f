"""Redis comes and goes, and the log says so once."""

from __future__ import annotations

import pytest

from cogrid.store.outage import Outage, wait_s
from cogrid.store.refusal import StoreError, refusal


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = [10.0]
    outage = Outage("runs go on", lambda: now_s[0])
    outage.back("claims")
    assert caplog.messages == []
    for who in ("claims", "runs", "claims"):
        outage.lost(who, StoreError("Redis cannot be reached", "start it"))
    assert caplog.messages == ["[redis] lost: Redis cannot be reached (start it); runs go on"]
    now_s[0] = 14.5
    outage.back("runs")
    assert len(caplog.messages) == 1
    outage.back("claims")
    assert caplog.messages[1:] == ["[redis] back after 4.5 s"]


def test_a_cause_that_somebody_must_mend_is_told_within_the_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that comes back with another password: it is up, and "lost" was said long ago."""
    outage = Outage("runs go on", lambda: 10.0)
    wrong = refusal("redis://h", "WRONGPASS invalid username-password pair")
    outage.lost("claims", StoreError("Redis cannot be reached", "start it"))
    outage.lost("claims", refusal("redis://h", "LOADING Redis is loading"))
    for who in ("claims", "renewals", "claims"):
        outage.lost(who, wrong)
    assert caplog.messages[1:] == [f"[redis] not yet back: {wrong.message} ({wrong.hint})"]
    assert outage.error is wrong


def test_who_asks_no_more_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """A run that was cancelled in the middle: nobody would ever say that it is back."""
    now_s = [10.0]
    outage = Outage("runs go on", lambda: now_s[0])
    for who in ("runs", "claims"):
        outage.lost(who, StoreError("Redis cannot be reached"))
    outage.gone("runs")
    assert len(caplog.messages) == 1
    now_s[0] = 11.0
    outage.back("claims")
    assert caplog.messages[1:] == ["[redis] back after 1.0 s"]
    outage.lost("runs", StoreError("Redis cannot be reached"))
    outage.gone("runs")
    assert outage.error is None
    assert len(caplog.messages) == 3, "nobody has seen it come back"


def test_waits_grow_to_two_ticks_and_differ() -> None:
    assert all(0.05 <= wait_s(1, 1.0) <= 0.1 for _ in range(50))
    assert all(1.0 <= wait_s(1000, 1.0) <= 2.0 for _ in range(50))
    assert wait_s(1000, 0.1) <= 0.2
    assert len({wait_s(3, 1.0) for _ in range(50)}) > 40
