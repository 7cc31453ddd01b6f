"""Redis comes and goes, and the log says so once."""

from __future__ import annotations

import pytest

from cogrid.store.outage import Outage, wait_s
from cogrid.store.refusal import StoreError


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


def test_waits_grow_to_two_ticks_and_differ() -> None:
    assert all(0.05 <= wait_s(1, 1.0) <= 0.1 for _ in range(50))
    assert all(1.0 <= wait_s(1000, 1.0) <= 2.0 for _ in range(50))
    assert wait_s(1000, 0.1) <= 0.2
    assert len({wait_s(3, 1.0) for _ in range(50)}) > 40
